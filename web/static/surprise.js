// Which notes of the model's are unlikely: they are paler, so that one finds what to ask about.
import { server } from "./connection.js";
import { isDuet } from "./duet.js";
import { current, model, on, page } from "./page.js";
import { keyOf } from "./piece.js";
import { redraw, roll } from "./stage.js";
import { isOn } from "./transport.js";
import { byId } from "./dom.js";

/** @import { Piece } from "./piece.js" */

/** @type {WeakMap<Piece, Map<string, number>>} nats by the keys of notes */
const known = new WeakMap();
/** @type {Piece | null} */
let asked = null;

/** Shows what is known of what there is, and asks for what is not. */
function show() {
  const piece = current();
  const isShown = isOn("unlikely") && !page.writing && piece?.notes.some((note) => !note[5]);
  roll.surprise = (isShown && piece && known.get(piece)) || new Map();
  if (!isShown || !piece || known.has(piece) || asked === piece || !page.isServed) return;
  if (isDuet()) return; // its answers come first
  asked = piece;
  server.ask("surprise", { model: model(), piece }, ({ surprise }) => {
    if (!surprise) return; // the model that is chosen does not play all of it
    known.set(piece, new Map(piece.notes.map((note, number) => [keyOf(note), surprise[number]])));
    show();
    redraw();
  });
}

on("show", show);
byId("unlikely").addEventListener("click", () => {
  byId("unlikely").setAttribute("aria-pressed", String(!isOn("unlikely")));
  show();
  redraw();
});
