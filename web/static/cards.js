// The variations, as small pictures to choose from.
import { byId, make, setHidden, setText } from "./dom.js";
import { on, page, session } from "./page.js";
import { counted, withNotes } from "./piece.js";
import { drawSmall } from "./roll.js";
import { roll } from "./stage.js";
import { choose, inWords } from "./writing.js";

/** @import { Piece } from "./piece.js" */

const DRAWN_EVERY = 400; // milliseconds, while they are written
let drawn = 0;

/** @param {number} number */
function card(number) {
  const canvas = make("canvas");
  canvas.setAttribute("aria-hidden", "true");
  const name = make("b", {}, make("span", { className: "wide" }, "Variation "), String(number + 1));
  const button = make("button", { type: "button", className: "variation" });
  button.append(canvas, name, " ", make("small"));
  button.addEventListener("click", () => choose(number));
  return button;
}

/** @returns {{ pieces: Piece[], chosen: number }} */
function shown() {
  const { writing } = page;
  if (!writing) return { pieces: session.now?.variations ?? [], chosen: session.now?.chosen ?? 0 };
  const pieces = writing.rows.map((row) =>
    withNotes(writing.base, [...writing.base.notes, ...row]),
  );
  return { pieces, chosen: writing.row };
}

function draw() {
  drawn = performance.now();
  const { pieces, chosen } = shown();
  const area = byId("variations");
  setHidden(byId("variations-section"), pieces.length < 2);
  if (pieces.length < 2) return;
  while (area.children.length < pieces.length) area.append(card(area.children.length));
  while (area.children.length > pieces.length) area.lastChild?.remove();
  const words = page.writing
    ? pieces.map((piece) => counted(piece.notes.length, "note"))
    : inWords(pieces);
  [...area.children].forEach((button, number) => {
    const [canvas, , about] = button.children;
    button.setAttribute("aria-pressed", String(number === chosen));
    drawSmall(/** @type {HTMLCanvasElement} */ (canvas), pieces[number], roll.programs);
    setText(about, words[number]);
  });
}

on("show", draw);
on("draw", () => {
  if (!page.writing || performance.now() - drawn >= DRAWN_EVERY) draw();
});
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
