// The stage: the roll, and what can be done with what is in it.
import { all, byId, field, say, setHidden, setOff } from "./dom.js";
import { current, freshPiece, isReady, isWriting, on, page, session, tell } from "./page.js";
import { DRUMS, describeBars, keyOf, lastEnd, withBars, withRoom } from "./piece.js";
import { Roll } from "./roll.js";
import { barStarts } from "./piece.js";
import { excerpt } from "./edit.js";

/** @import { Piece } from "./piece.js" */

const LEAST_BARS = 4; // that are shown

export const roll = new Roll(/** @type {HTMLCanvasElement} */ (byId("roll")), [], {
  frame: byId("roll-frame"),
  sheet: byId("sheet"),
  mark: byId("cursor"),
});

/**
 * A piece as the roll shows it: with an empty bar at its end, to put notes in.
 * @param {Piece} piece
 */
function withSpace(piece) {
  const room = withBars(withRoom(piece, lastEnd(piece)), piece.notes.length ? 1 : 0);
  const least = Math.max(LEAST_BARS, (session.now?.chords.length ?? 0) + 1);
  return withBars(room, Math.max(0, least - room.bars.length));
}

/**
 * Draws a piece; without one, what there is.
 * @param {Piece | null} piece
 */
export function redraw(piece = current()) {
  setHidden(byId("roll-empty"), Boolean(piece?.notes.length) || Boolean(page.writing));
  const shown = piece ?? (page.plays && freshPiece());
  if (shown) roll.show(page.writing ? shown : withSpace(shown));
}

/** Draws what there is, and says what can be done with it. */
function show() {
  const piece = current();
  const keys = new Set(piece?.notes.map(keyOf));
  roll.chosen = new Set([...roll.chosen].filter((key) => keys.has(key)));
  if (!page.writing && roll.selection && !(piece && roll.selection[1] <= piece.bars.length))
    roll.selection = null;
  redraw();
  enable();
}

/** Says what can be done now. */
export function enable() {
  const has = Boolean(current()?.notes.length);
  const voices = page.plays?.programs.filter(([program]) => program !== DRUMS) ?? [];
  const hasOneVoice = voices.length < 2;
  // drums play no tunes
  for (const id of ["hear-one", "examples"]) setHidden(byId(id), !voices.length);
  for (const button of all("[data-how]")) {
    const { how } = button.dataset;
    const isImpossible =
      (!has && how !== "continue") ||
      (hasOneVoice && (how === "harmonize" || how === "accompany")) ||
      (how === "rewrite" && !roll.selection);
    setOff(button, !isReady() || Boolean(page.writing) || isImpossible);
  }
  byId("about-action").textContent = page.writing ? "" : hints(has, hasOneVoice).join(" ");
  setHidden(byId("stop-writing"), !isWriting());
  setOff(field("undo"), !session.canUndo);
  setOff(field("redo"), !session.canRedo);
  for (const button of all("#take button"))
    setOff(button, !has || (button.dataset.file ? !page.isServed : Boolean(page.writing)));
}

/**
 * @param {boolean} has notes
 * @param {boolean} hasOneVoice
 */
function hints(has, hasOneVoice) {
  const hints = hasOneVoice ? ["This model plays one voice: it adds none to yours."] : [];
  const piece = current();
  if (!has || !piece) hints.push("Without notes, the model begins by itself.");
  else if (roll.selection) hints.push(`${selectedWords()} selected.`);
  else hints.push("To rewrite, drag over bar numbers, or tap two.");
  return hints;
}

// --- bars that are selected

/**
 * Selects bars from one to another, both of them included.
 * @param {number} bar
 * @param {number} other
 */
export function selectBars(bar, other) {
  const most = (current()?.bars.length ?? 1) - 1;
  const [first, last] = [bar, other].map((each) => Math.min(each, most)).sort((a, b) => a - b);
  roll.selection = [first, last + 1];
  tell("select");
}

/** What is selected in words, "Bars 3 to 5"; empty: all. */
export function selectedWords() {
  const piece = current();
  return piece && roll.selection ? describeBars(piece, roll.selection) : "";
}

/** The bars that are selected, or all there is. */
export function selectedPiece() {
  const piece = current();
  return piece && roll.selection ? excerpt(piece, roll.selection) : piece;
}

export function sayBars() {
  if (selectedWords()) say(`${selectedWords()} selected.`);
}

/**
 * The number of a bar is tapped: the first to select, then the last; the same again selects nothing.
 * @param {number} bar
 */
export function tapBar(bar) {
  const [first, end] = roll.selection ?? [-1, -1];
  if (first === bar && end === bar + 1) return selectNothing();
  selectBars(end === first + 1 && first >= 0 ? first : bar, bar);
  sayBars();
}

export function selectNothing() {
  roll.selection = roll.looks = null;
  roll.chosen = new Set();
  tell("forget");
  tell("select");
  say("Nothing selected.");
}

/** The steps of the bars that are selected; null: none are. */
export function selectedSteps() {
  const piece = current();
  if (!piece || !roll.selection) return null;
  const starts = barStarts(piece);
  return /** @type {[number, number]} */ (roll.selection.map((bar) => starts[bar]));
}

const input = /** @type {HTMLDetailsElement} */ (byId("input"));
let isFolded = false; // once: who opens it again wants it open

/** Where there is little room, what puts notes in folds away when it has been used. */
function fold() {
  const isSmall = byId("lower").checkVisibility(); // only there are there buttons for other keys
  if (!isSmall || isFolded || !session.now?.variations) return;
  isFolded = true;
  input.open = false;
}

on("show", show);
on("show", fold);
on("server", enable);
on("draw", () => redraw());
on("select", () => redraw());
on("select", enable);
addEventListener("resize", () => redraw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
