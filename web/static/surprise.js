// Which notes of the model's are unlikely: they are paler, so that one finds what to ask about.
import { server } from "./connection.js";
import { isDuet } from "./duet.js";
import { current, model, on, page } from "./page.js";
import { keyOf } from "./piece.js";
import { redraw, roll } from "./stage.js";
import { byId, isOn, turn } from "./dom.js";

/** @import { Piece } from "./piece.js" */

const NOTHING = { piece: /** @type {Piece | null} */ (null), of: "" };

/**
 * What was asked about last, of which model, and the nats by the keys of notes, once they are told.
 * @type {{ piece: Piece | null, of: string, nats?: Map<string, number> }}
 */
let asked = NOTHING;

/** Shows what is known of what there is, and asks for what is not. */
function show() {
  const piece = current();
  const isShown = isOn("unlikely") && !page.writing && piece?.notes.some((note) => !note[5]);
  const isAsked = asked.piece === piece && asked.of === model();
  roll.surprise = (isShown && isAsked && asked.nats) || new Map();
  if (!isShown || !piece || isAsked || !page.isServed) return;
  if (isDuet()) return; // its answers come first
  const about = (asked = { piece, of: model() });
  server.ask("surprise", { model: about.of, piece }, ({ surprise }) => {
    if (!surprise) return; // the model does not play all of it
    const nats = new Map(piece.notes.map((note, number) => [keyOf(note), surprise[number]]));
    if (asked === about) asked = { ...about, nats };
    show();
    redraw();
  });
}

on("server", () => (asked = NOTHING)); // it answers no more
on("show", show);
byId("unlikely").addEventListener("click", () => {
  turn("unlikely");
  show();
  redraw();
});
