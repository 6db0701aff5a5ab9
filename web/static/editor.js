// Editing in the roll: by mouse, by touch, and by keys.
import { byId, field, isOn, say, setHidden, setOff, turn } from "./dom.js";
import { edit, isWriting, nameOf, on, page, sound, soundOf, startedPiece } from "./page.js";
import * as edits from "./edit.js";
import { isDuet } from "./duet.js";
import { recorder } from "./recording.js";
import { DRUMS, barStarts, counted, keyOf, where } from "./piece.js";
import { redraw, roll, sayBars, selectBars, selectNothing, tapBar } from "./stage.js";
import { explain } from "./why.js";
import { goTo } from "./transport.js";
import { ownNote, ownVoice } from "./page.js";

/**
 * @import { Edited } from "./edit.js"
 * @import { Note, Piece } from "./piece.js"
 * @import { Place, View } from "./view.js"
 *
 * What a mouse or a finger does from where it went down.
 * @typedef {{ kind: "ruler" | "move" | "stretch" | "draw" | "box" | "tap", from: Place, x: number,
 *   y: number, view: View, isMoved: boolean, isMore: boolean, before: Set<string>,
 *   edited?: Edited, pitch?: number }} Gesture
 */

const SLACK = 5; // pixels that a click may move
const TWICE = 400; // milliseconds between the clicks of a double click
const canvas = /** @type {HTMLCanvasElement} */ (byId("roll"));
/** @type {Gesture | null} */
let gesture = null;
/** @type {{ time: number, x: number, y: number } | null} the click before */
let clicked = null;
/** @type {{ notes: Note[], parts: Piece["parts"] }} */
let copied = { notes: [], parts: undefined };

const grid = () => field("grid").value;
const isDrawing = () => isOn("draw");
const canEdit = () => Boolean(page.plays) && !isWriting() && !recorder.isOn && !isDuet();
/** @returns {[low: number, high: number]} */
const range = () => page.plays?.pitches ?? [0, 127];

/** What there is to edit; on an empty page, an empty piece. */
const piece = startedPiece;

/**
 * @param {Edited} edited
 * @param {string} label
 */
function commit(edited, label) {
  roll.chosen = new Set(edited.keys);
  edit(edited.piece, label);
}

/** @param {number} pitch */
const sayPitch = (pitch) => sound.note(ownVoice(), pitch, 80, undefined, 0.3);

// --- mouse and touch

/**
 * @param {MouseEvent | Touch} event
 * @returns {[x: number, y: number]}
 */
function at(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

/**
 * What a gesture will do that begins at a place.
 * @param {Place} place
 * @param {boolean} isTouch
 * @returns {Gesture["kind"]}
 */
function kindOf({ isRuler, note, isEnd }, isTouch) {
  if (isRuler) return "ruler";
  const isHeld = note && (!isTouch || isDrawing() || roll.chosen.has(keyOf(note)));
  if (isHeld) return isEnd ? "stretch" : "move";
  if (isDrawing() && !note) return "draw";
  return isTouch ? "tap" : "box";
}

/** @param {PointerEvent} event */
function down(event) {
  const { view } = roll;
  if (!view || !canEdit() || event.button !== 0 || !event.isPrimary) return;
  const [x, y] = at(event);
  const from = view.find(x, y);
  if (from.isKeys) return sayPitch(from.pitch);
  const kind = kindOf(from, event.pointerType === "touch");
  const before = new Set(roll.chosen);
  const isMore = event.shiftKey || event.ctrlKey || event.metaKey;
  gesture = { kind, from, x, y, view, isMoved: false, isMore, before };
  if ((kind === "move" || kind === "stretch") && from.note)
    roll.chosen = grabbed(from.note, before, isMore);
}

/** @param {PointerEvent} event */
function move(event) {
  const [x, y] = at(event);
  if (!gesture) return hover(event, x, y);
  if (!gesture.isMoved && Math.hypot(x - gesture.x, y - gesture.y) < SLACK) return;
  gesture.isMoved = true;
  const { kind, from, view } = gesture;
  if (kind === "ruler" && event.pointerType !== "touch")
    return selectBars(from.bar, view.find(x, y).bar);
  if (kind === "box") return drawBox(gesture, x, y);
  const edited = editedBy(gesture, x, y);
  if (!edited) return;
  gesture.edited = edited;
  roll.chosen = new Set(edited.keys);
  roll.range = [view.low, view.high];
  redraw(edited.piece);
  const [first] = edits.notesOf(edited.piece, roll.chosen);
  if (kind === "move" && first && first[2] !== gesture.pitch) {
    if (gesture.pitch !== undefined) sound.note(first[4], first[2], first[3], undefined, 0.25);
    gesture.pitch = first[2];
  }
}

/**
 * Shows by the cursor what a click would do.
 * @param {PointerEvent} event
 * @param {number} x
 * @param {number} y
 */
function hover(event, x, y) {
  if (event.target !== canvas || !roll.view) return;
  const place = roll.view.find(x, y);
  canvas.title = place.note?.[4] === DRUMS ? soundOf(place.note[2], DRUMS) : ""; // not by its row
  if (place.isKeys) canvas.style.cursor = "pointer";
  else if (place.isRuler) canvas.style.cursor = "col-resize";
  else if (place.note) canvas.style.cursor = place.isEnd ? "ew-resize" : "grab";
  else canvas.style.cursor = isDrawing() ? "crosshair" : "default";
}

/**
 * Selects the notes in a box, with those that were selected where Shift is held.
 * @param {Gesture} gesture
 * @param {number} x
 * @param {number} y
 */
function drawBox({ view, isMore, before, ...from }, x, y) {
  const [left, top] = [Math.min(x, from.x), Math.min(y, from.y)];
  roll.box = { x: left, y: top, width: Math.abs(x - from.x), height: Math.abs(y - from.y) };
  const { width, height } = roll.box;
  const inside = piece().notes.filter((note) => {
    const [x0, y0, wide, high] = view.box(note);
    return x0 < left + width && x0 + wide > left && y0 < top + height && y0 + high > top;
  });
  roll.chosen = new Set([...(isMore ? before : []), ...inside.map(keyOf)]);
  redraw();
}

/**
 * The piece as a gesture would leave it at a place.
 * @param {Gesture} gesture
 * @param {number} x
 * @param {number} y
 */
function editedBy({ kind, from, view, before, ...begun }, x, y) {
  const there = piece();
  const step = view.step(x);
  const { note } = from;
  if (kind === "draw") {
    const onset = edits.snap(there, grid(), from.step, Math.floor);
    const least = edits.gridSteps(there, grid(), from.bar);
    const duration = Math.max(least, edits.snap(there, grid(), step, Math.ceil) - onset);
    return edits.added(there, [ownNote([onset, Math.round(duration), inRange(from.pitch)])]);
  }
  if (!note) return null;
  const own = grabbed(note, before, begun.isMore);
  const by = step - view.step(begun.x);
  if (kind === "stretch") {
    const end = edits.snap(there, grid(), note[0] + note[1] + by);
    const least = grid() === "free" ? 1 : edits.gridSteps(there, grid(), from.bar);
    return edits.stretched(there, own, end - note[0] - note[1], least);
  }
  if (kind !== "move") return null;
  const onset = edits.snap(there, grid(), note[0] + by);
  const up = Math.round((begun.y - y) / view.row);
  return edits.moved(there, own, onset - note[0], up, range());
}

/**
 * The keys of what a gesture moves: a note, with all that was selected if the note was, or if Shift
 * is held.
 * @param {Note} note
 * @param {Set<string>} before what was selected
 * @param {boolean} isMore
 */
function grabbed(note, before, isMore) {
  const key = keyOf(note);
  return new Set([...(isMore || before.has(key) ? before : []), key]);
}

/** @param {number} pitch */
const inRange = (pitch) => Math.max(range()[0], Math.min(range()[1], pitch));

/** @param {PointerEvent} event */
function up(event) {
  const done = gesture;
  gesture = null;
  roll.box = roll.range = null;
  if (!done) return;
  const [x, y] = at(event);
  if (!done.isMoved) return click(done, event.timeStamp, x, y);
  if (done.kind === "ruler") return sayBars();
  if (done.edited) {
    const gone = piece().notes.length - done.edited.piece.notes.length;
    commit(done.edited, done.kind);
    const what = done.kind === "draw" ? "drawn" : done.kind === "move" ? "moved" : "stretched";
    return sayChosen(gone > 0 ? `${what} onto ${gone}, now gone` : what);
  }
  if (done.kind === "box") sayChosen("selected");
  redraw();
  enable();
}

/**
 * A click or a tap; the second of two adds a note.
 * @param {Gesture} gesture
 * @param {number} time
 * @param {number} x
 * @param {number} y
 */
function click({ kind, from, isMore, before }, time, x, y) {
  const { note } = from;
  const isTwice =
    clicked && time - clicked.time < TWICE && Math.hypot(x - clicked.x, y - clicked.y) < 4 * SLACK;
  clicked = { time, x, y };
  if (kind === "ruler") return tapBar(from.bar);
  if (note && isMore) {
    roll.chosen = new Set(before);
    if (!roll.chosen.delete(keyOf(note))) roll.chosen.add(keyOf(note));
    redraw();
    enable();
    return sayChosen("selected");
  }
  if (note) {
    explain(note);
    return enable();
  }
  if (kind === "draw" || isTwice) {
    clicked = null;
    return addAt(from.step, from.pitch, Math.floor);
  }
  if (roll.chosen.size || roll.looks) selectNothing();
  goTo(edits.snap(piece(), grid(), from.step, Math.floor));
}

/**
 * Adds a note as long as the grid is wide.
 * @param {number} step
 * @param {number} pitch
 * @param {(place: number) => number} round
 */
function addAt(step, pitch, round = Math.round) {
  const there = piece();
  const onset = edits.snap(there, grid(), step, round);
  const duration =
    grid() === "free" ? there.steps / 2 : edits.gridSteps(there, grid(), where(there, onset).bar);
  const note = ownNote([onset, Math.max(1, Math.round(duration)), inRange(pitch)]);
  commit(edits.added(there, [note]), soundOf(note[2], note[4]));
  sayPitch(note[2]);
  sayChosen("added");
}

/** @param {string} what */
function sayChosen(what) {
  const notes = edits.notesOf(piece(), roll.chosen);
  const [note] = notes;
  if (notes.length === 1) {
    const { number, beat } = where(piece(), note[0]);
    say(`${soundOf(note[2], note[4])} ${what}: ${nameOf(note[4])}, bar ${number}, beat ${beat}.`);
  } else say(`${counted(notes.length, "note")} ${what}.`);
}

// --- what is done with the notes that are selected

/** @type {Record<string, () => void>} */
const ACTIONS = {
  delete: () => {
    const gone = counted(roll.chosen.size, "note");
    commit(edits.removed(piece(), roll.chosen), "deleted");
    say(`${gone} deleted. You can undo this.`);
  },
  copy: () => {
    copied = { notes: edits.notesOf(piece(), roll.chosen), parts: piece().parts };
    say(`${counted(copied.notes.length, "note")} copied. Paste inserts at the cursor.`);
    enable();
  },
  cut: () => {
    ACTIONS.copy();
    ACTIONS.delete();
  },
  paste,
  all: () => {
    roll.chosen = new Set(piece().notes.map(keyOf));
    redraw();
    enable();
    sayChosen("selected");
  },
  up: () => shift(0, 12),
  down: () => shift(0, -12),
  softer: () => louden(-16),
  louder: () => louden(16),
  quantize: () => {
    commit(edits.quantized(piece(), roll.chosen, grid()), "quantized");
    sayChosen("put on the grid");
  },
};

function paste() {
  const there = piece();
  const notes = edits.fitted(copied.notes, copied.parts, there.parts);
  const end = Math.max(...notes.map((note) => note[0] + note[1]));
  // where the cursor is; without one, at the beginning of an empty page or of the next bar
  const isAtBegin = roll.cursor === 0 || !there.notes.length;
  const next = isAtBegin ? 0 : (barStarts(there).find((start) => start >= end) ?? end);
  commit(edits.pasted(there, notes, page.cursor || next), "pasted");
  sayChosen("pasted");
}

/**
 * Does something with the notes that are selected, or that were copied; gives whether it can.
 * @param {string} action
 */
export function act(action) {
  const has = { paste: copied.notes.length > 0, all: piece().notes.length > 0 };
  const can = canEdit() && (has[/** @type {"all"} */ (action)] ?? roll.chosen.size > 0);
  if (can) ACTIONS[action]();
  return can;
}

export const hasChosen = () => roll.chosen.size > 0;

/**
 * @param {number} steps
 * @param {number} semitones
 */
function shift(steps, semitones) {
  const edited = edits.moved(piece(), roll.chosen, steps, semitones, range());
  commit(edited, "moved");
  const [first] = edits.notesOf(edited.piece, roll.chosen);
  if (first) sound.note(first[4], first[2], first[3], undefined, 0.3);
  roll.keepInView(first?.[0] ?? 0);
  sayChosen("moved");
}

/** @param {number} by */
function louden(by) {
  const edited = edits.loudened(piece(), roll.chosen, by);
  commit(edited, by > 0 ? "louder" : "softer");
  const [first] = edits.notesOf(edited.piece, roll.chosen);
  if (first) sound.note(first[4], first[2], first[3], undefined, 0.3);
  sayChosen(by > 0 ? "louder" : "softer");
}

function enable() {
  roll.hasLoudness = Boolean(page.plays?.has_loudness);
  for (const action of ["softer", "louder"]) setHidden(byId(action), !roll.hasLoudness);
  for (const button of document.querySelectorAll("[data-edit]")) {
    const { edit: action } = /** @type {HTMLElement} */ (button).dataset;
    const isOff = action === "paste" ? !copied.notes.length : !roll.chosen.size;
    setOff(/** @type {HTMLButtonElement} */ (button), isOff || !canEdit());
  }
}

// --- keys in the roll

/** @param {KeyboardEvent} event */
function key(event) {
  if (!canEdit() || event.ctrlKey || event.metaKey) return;
  const across = { ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0;
  const up = { ArrowUp: 1, ArrowDown: -1 }[event.key] ?? 0;
  if (across && event.altKey) alter(across, event.shiftKey);
  else if (across && event.shiftKey) growSelection(across);
  else if (across) walk(across);
  else if (up && hasChosen()) shift(0, up * (event.shiftKey ? 12 : 1));
  else if (up) return;
  else if (event.key === "Insert") addAt(page.cursor, inRange(67));
  else if (event.key === "Enter" && focused() >= 0) explain(piece().notes[focused()]);
  else if (event.key === "Escape") selectNothing();
  else return;
  event.preventDefault();
  enable();
}

/** The number of the first note that is selected; -1: none. */
const focused = () => piece().notes.findIndex((note) => roll.chosen.has(keyOf(note)));

/**
 * Goes from note to note.
 * @param {number} step
 */
function walk(step) {
  const { notes } = piece();
  if (!notes.length) return;
  const note = notes[Math.min(notes.length - 1, Math.max(0, focused() + step))];
  const { number, beat } = where(piece(), note[0]);
  roll.chosen = new Set([keyOf(note)]);
  redraw();
  roll.keepInView(note[0]);
  sound.note(note[4], note[2], note[3], undefined, 0.4);
  const whose = `${nameOf(note[4])}, ${note[5] ? "yours" : "the model's"}`;
  say(`${soundOf(note[2], note[4])}, ${whose}, bar ${number}, beat ${beat}.`);
}

/**
 * Moves what is selected by a line of the grid, or makes it longer by one.
 * @param {number} across
 * @param {boolean} isLength
 */
function alter(across, isLength) {
  if (!hasChosen()) return;
  const by = across * edits.gridSteps(piece(), grid());
  if (!isLength) return shift(by, 0);
  commit(edits.stretched(piece(), roll.chosen, by, Math.abs(by)), "stretched");
  sayChosen("stretched");
}

/**
 * Selects one bar more, or one less.
 * @param {number} step
 */
function growSelection(step) {
  const there = piece();
  if (!there.notes.length) return;
  const { bar } = where(there, there.notes[Math.max(0, focused())][0]);
  const [first, end] = roll.selection ?? [bar, bar];
  selectBars(first, Math.max(first, end + step - 1));
  sayBars();
}

// --- wires

canvas.addEventListener("pointerdown", down);
addEventListener("pointermove", move);
addEventListener("pointerup", up);
addEventListener("pointercancel", () => {
  gesture = null;
  roll.box = roll.range = null;
  redraw();
});
// a finger on what is selected moves it; elsewhere it scrolls
canvas.addEventListener(
  "touchstart",
  (event) => {
    const place = roll.view?.find(...at(event.touches[0]));
    if (place && !["tap", "ruler"].includes(kindOf(place, true))) event.preventDefault();
  },
  { passive: false },
);
canvas.addEventListener(
  "wheel",
  (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    roll.zoomBy(event.deltaY < 0 ? 1.25 : 0.8, at(event)[0]);
  },
  { passive: false },
);
canvas.addEventListener("keydown", key);
on("show", enable);
for (const button of document.querySelectorAll("[data-edit]"))
  button.addEventListener("click", () =>
    act(/** @type {HTMLElement} */ (button).dataset.edit ?? ""),
  );
byId("draw").addEventListener("click", () => {
  turn("draw");
  if (isDrawing()) say("Draw notes: drag to the right for longer ones. Drag a note to move it.");
});
byId("zoom-in").addEventListener("click", () => roll.zoomBy(1.5));
byId("zoom-out").addEventListener("click", () => roll.zoomBy(1 / 1.5));
