// The model writes: what is asked, what comes, and what becomes of it.
import { copied, described, ranks } from "./describe.js";
import { all, byId, say } from "./dom.js";
import { server } from "./connection.js";
import { change, isBad, isReady, isWriting, newSeed, on, page, request, session } from "./page.js";
import { settings, sound, tell } from "./page.js";
import { FASTEST, SLOWEST, barStarts, counted, keyOf } from "./piece.js";
import { withBars, withNotes, withoutEmptyEnd } from "./piece.js";
import { rewritten } from "./legend.js";
import { enable, roll } from "./stage.js";
import { player } from "./transport.js";

/**
 * @import { Note, Piece } from "./piece.js"
 * @import { Ask } from "./session.js"
 * @import { Told } from "./server.js"
 * @import { Writing } from "./page.js"
 */

const DRAWN_EVERY = 80; // milliseconds: drawing must not hold up who writes, on one core
let drawing = 0;

/**
 * How good a variation is beside the others, in words, as soon as that is known.
 * @type {WeakMap<Piece, string>}
 */
const places = new WeakMap();

/**
 * Which long run of it stands in a training piece, in words; not known where there are none.
 * @type {WeakMap<Piece, string>}
 */
const copies = new WeakMap();

/**
 * Variations in words.
 * @param {Piece[]} pieces
 */
export const inWords = (pieces) =>
  described(
    pieces,
    pieces.map((piece) => places.get(piece)),
    pieces.map((piece) => copies.get(piece)),
  );

/**
 * @param {string} how
 * @param {Partial<Ask>} more
 */
export function write(how, more = {}) {
  if (!page.plays || page.writing) return;
  tell("settle");
  newSeed();
  sound.wake();
  const programs = how === "rewrite" ? rewritten() : null;
  if (programs?.length === 0)
    return say("All voices are kept: click K in the legend to let one change.", true);
  const bars = how === "rewrite" ? roll.selection : null;
  const ask = request(how, { ...(bars && { bars }), ...(programs && { programs }), ...more });
  settings.complain(null, "");
  say("Writing …");
  page.isAsked = true;
  enable();
  server.ask(
    "write",
    ask,
    hearer(ask, () => player.play(page.cursor)),
  );
}

/**
 * What hears all that is told of what was asked; `onBegin` plays it.
 * @param {Ask} ask
 * @param {(writing: Writing) => void} onBegin
 */
export function hearer(ask, onBegin) {
  return (/** @type {Told} */ told) => {
    page.isAsked = false;
    if (told.error) return failed(told);
    if (told.begun) onBegin(begin(told, ask));
    if (told.notes) hear(told.notes);
    if (told.done) finish(told.done);
    if (told.order) learn(places, ranks(/** @type {any} */ (told)));
    if (told.shared) learn(copies, told.shared.map(copied));
  };
}

/**
 * What a note keeps that another instrument plays.
 * @param {Note} note
 */
const placeOf = (note) => `${note[0]}/${note[2]}`;

/**
 * What the server tells of a piece, with the notes that it was given as they were, and in the tempo
 * that was asked for: it may have held the last ones for the model, and a model knows only some
 * tempi.
 * @param {Piece} piece
 * @param {Ask} ask
 * @returns {Piece}
 */
function asGiven(piece, { piece: given, settings: { tempo } }) {
  const known = new Map(given.notes.map((note) => [keyOf(note), note]));
  const told = new Set(piece.notes.map(keyOf));
  /** @type {Map<string, Note[]>} those that others play now, of each place one's own last */
  const left = new Map();
  for (const note of [...given.notes].sort((a, b) => a[5] - b[5]))
    if (!told.has(keyOf(note))) left.set(placeOf(note), [...(left.get(placeOf(note)) ?? []), note]);
  const notes = piece.notes.map((note) => {
    if (!note[5]) return note;
    const as = known.get(keyOf(note)) ?? left.get(placeOf(note))?.pop()?.with(4, note[4]);
    return /** @type {Note} */ (as ?? note);
  });
  const isAsked = tempo >= SLOWEST && tempo <= FASTEST && piece.grid === "beats";
  const tempi = /** @type {[number][]} */ (
    piece.tempo.map(([bpm]) => [isAsked ? Math.round(tempo) : bpm])
  );
  return { ...piece, notes, tempo: tempi };
}

/**
 * @param {Told} told
 * @param {Ask} ask
 */
function begin(told, ask) {
  const goesOn = ask.how === "continue" || ask.how === "accompany";
  const base = asGiven(withBars(told.begun, goesOn ? ask.settings.bars : 0), ask);
  const rows = Array.from({ length: ask.variations }, () => []);
  const bars = told.begun.bars.length;
  const writing = { base, bars, ask, rows, row: 0, opens: told.opens, changes: told.changes };
  page.writing = writing;
  if (page.plays) page.plays.trained = told.trained;
  page.cursor = barStarts(base).findLast((start) => start <= told.opens) ?? 0;
  if (goesOn) page.cursor = ask.how === "accompany" ? 0 : told.opens;
  tell("tempo");
  tell("show");
  return writing;
}

/** @param {[row: number, ...note: [number, number, number, number, number]][]} notes */
function hear(notes) {
  const { writing } = page;
  if (!writing) return;
  for (const [row, ...note] of notes) writing.rows[row].push([...note, 0]);
  drawing ||= setTimeout(() => {
    drawing = 0;
    if (page.writing) tell("draw");
  }, DRAWN_EVERY);
}

/** @param {Piece[]} pieces */
function finish(pieces) {
  const { writing } = page;
  if (!writing) return;
  const { ask, base, row, changes } = writing;
  const variations = pieces.map((piece) => asGiven(piece, ask));
  const hasNew = variations.map(({ notes }) => notes.length > base.notes.length);
  const isNew = hasNew.includes(true);
  const chosen = hasNew[row] || !isNew ? row : hasNew.indexOf(true);
  page.writing = null;
  change(variations[chosen], ask.how, { written: ask, variations, chosen });
  const many = variations.length > 1;
  const wrote = many ? `Wrote ${variations.length} variations` : "Wrote one piece";
  const what = isNew ? wrote : "The model added no notes";
  const known = session.states.some((state) => state.label === "instead" || state.chosen > 0);
  const hint = isNew && !known ? " Next: hear another, click a note to ask why, or Continue." : "";
  say([what, ...changes, ...rewrittenOwn(ask, base)].join("; ") + "." + hint);
}

/**
 * Keeps what is known of each of the variations, in words.
 * @param {WeakMap<Piece, string>} known
 * @param {string[]} words
 */
function learn(known, words) {
  session.now?.variations?.forEach((piece, number) => known.set(piece, words[number]));
  tell("draw");
}

/**
 * Says how many of a person's own notes stood in the bars that were rewritten.
 * @param {Ask} ask
 * @param {Piece} base
 */
function rewrittenOwn(ask, base) {
  /** @param {Piece} piece */
  const count = (piece) => piece.notes.filter((note) => note[5]).length;
  const gone = ask.how === "rewrite" ? count(ask.piece) - count(base) : 0;
  return gone > 0
    ? [`these bars had ${counted(gone, "note")} of yours, which Undo brings back`]
    : [];
}

/** @param {Told} told */
function failed(told) {
  keepWritten();
  const isSaid = settings.complain(told.control ?? null, told.error);
  say(told.error + (isSaid ? " (see below)" : ""), true);
  tell("show");
}

function stopWriting() {
  if (!isWriting()) return;
  server.stop();
  keepWritten();
  say("Stopped.");
}

/** Ends the writing; what is there of the variations is kept, but no bar that is still empty. */
function keepWritten() {
  const { writing } = page;
  page.isAsked = false;
  page.writing = null;
  if (!writing) {
    tell("tempo"); // which may be another since it was asked
    return tell("show");
  }
  player.stop();
  const { base, bars, rows, row, ask } = writing;
  const variations = rows.map((row) =>
    withoutEmptyEnd(withNotes(base, [...base.notes, ...row]), bars),
  );
  if (rows.some((row) => row.length))
    change(variations[row], ask.how, { written: ask, variations, chosen: row });
  else tell("show");
}

/** Asks whether the model could write as the settings say, and tells beside which it could not. */
function check() {
  if (!isReady() || page.writing) return;
  server.ask("check", request("continue", { variations: 1 }), (told) => {
    settings.complain(told.control ?? null, told.error ?? "");
    if (told.error && !told.control) say(told.error, true);
    else if (isBad()) say("");
  });
}

/**
 * Hears and keeps one of the variations.
 * @param {number} number
 */
export function choose(number) {
  if (page.writing) {
    page.writing.row = number;
    player.play(page.cursor);
    return tell("show");
  }
  const { now } = session;
  if (!now?.variations) return;
  const { variations, label, chosen } = now;
  if (number !== chosen)
    change(variations[number], label, { variations, chosen: number, ...session.source(number) });
  player.play(page.cursor);
  say(`Variation ${number + 1} is kept: ${inWords(variations)[number]}.`);
}

let checking = 0;
on("asked", () => {
  clearTimeout(checking);
  checking = setTimeout(check, 250);
});
on("settle", stopWriting);
for (const button of all("[data-how]"))
  button.addEventListener("click", () => write(button.dataset.how ?? ""));
byId("stop-writing").addEventListener("click", stopWriting);
