// Edits of notes: each gives the new piece, and the keys of the notes that were edited. An edited
// note is one's own, and takes the place of another that begins on the same key at the same time.
import { DRUMS, UNNAMED, barOf, barStarts, generalOf, keyOf, where, withNotes } from "./piece.js";

/**
 * @import { Note, Piece } from "./piece.js"
 *
 * @typedef {{ piece: Piece, keys: string[] }} Edited
 * @typedef {[low: number, high: number]} Range
 */

/**
 * The steps between the lines of a grid, at a bar.
 * @param {Piece} piece
 * @param {string} grid "beat", as the meter has it, a fraction of a whole note, or "free"
 * @param {number} bar
 */
export function gridSteps(piece, grid, bar = 0) {
  if (grid === "beat") return barOf(piece, bar).beat;
  const [part, whole] = grid.split("/").map(Number);
  return whole ? Math.max(1, Math.round((part * 4 * piece.steps) / whole)) : 1;
}

/**
 * The line of the grid at a step: grids begin anew with each bar.
 * @param {Piece} piece
 * @param {string} grid
 * @param {number} step
 * @param {(place: number) => number} round
 */
export function snap(piece, grid, step, round = Math.round) {
  const starts = barStarts(piece);
  const found = starts.findIndex((start) => start > step) - 1;
  const bar = found < 0 ? piece.bars.length - 1 : found;
  const { missing } = barOf(piece, bar);
  const unit = gridSteps(piece, grid, bar);
  const start = starts[bar] - missing; // an upbeat is the end of a whole bar
  return Math.max(0, Math.round(start + round((step - start) / unit) * unit));
}

/**
 * The piece with notes in the place of those of some keys.
 * @param {Piece} piece
 * @param {Iterable<string>} gone
 * @param {Note[]} notes
 * @returns {Edited}
 */
function replaced(piece, gone, notes) {
  const keys = notes.map(keyOf);
  const off = new Set([...gone, ...keys]);
  const once = new Map(notes.map((note) => [keyOf(note), note]));
  const rest = piece.notes.filter((note) => !off.has(keyOf(note)));
  return { piece: withNotes(piece, cut([...rest, ...once.values()])), keys };
}

/**
 * Notes, no two on a key at a time, of which each ends at the latest where its key is struck again.
 * @param {Note[]} notes
 */
function cut(notes) {
  /** @type {Map<string, number>} when each key is struck next */
  const next = new Map();
  return [...notes]
    .sort((a, b) => b[0] - a[0])
    .map((note) => {
      const key = `${note[4]}/${note[2]}`;
      const most = (next.get(key) ?? Infinity) - note[0];
      next.set(key, note[0]);
      return note[1] > most ? /** @type {Note} */ (note.with(1, most)) : note;
    });
}

/**
 * @param {Piece} piece
 * @param {Set<string>} keys
 */
export const notesOf = (piece, keys) => piece.notes.filter((note) => keys.has(keyOf(note)));

/**
 * The piece with notes changed, which so are a person's own.
 * @param {Piece} piece
 * @param {Set<string>} keys
 * @param {(note: Note) => Note} change
 */
function changed(piece, keys, change) {
  const notes = notesOf(piece, keys).map((note) => change(note).with(5, 1));
  return replaced(piece, keys, /** @type {Note[]} */ (notes));
}

/**
 * @param {Piece} piece
 * @param {Note[]} notes
 */
export const added = (piece, notes) => replaced(piece, [], notes);

/**
 * @param {Piece} piece
 * @param {Set<string>} keys
 */
export const removed = (piece, keys) => replaced(piece, keys, []);

/**
 * Moves notes by steps and semitones, all of them alike, as far as they stay in the piece's time
 * and in the range.
 * @param {Piece} piece
 * @param {Set<string>} keys
 * @param {number} steps
 * @param {number} semitones
 * @param {Range} range
 */
export function moved(piece, keys, steps, semitones, [low, high]) {
  const notes = notesOf(piece, keys);
  const pitches = notes.map((note) => note[2]);
  const by = Math.max(steps, -Math.min(...notes.map((note) => note[0])));
  const up = Math.max(
    Math.min(semitones, Math.max(0, high - Math.max(...pitches))),
    Math.min(0, low - Math.min(...pitches)),
  );
  return changed(piece, keys, ([onset, duration, pitch, ...rest]) => [
    onset + by,
    duration,
    pitch + up,
    ...rest,
  ]);
}

/**
 * Makes notes longer by steps, or shorter, none of them shorter than the least.
 * @param {Piece} piece
 * @param {Set<string>} keys
 * @param {number} steps
 * @param {number} least
 */
export function stretched(piece, keys, steps, least) {
  return changed(piece, keys, ([onset, duration, ...rest]) => [
    onset,
    Math.max(Math.min(least, duration), duration + steps),
    ...rest,
  ]);
}

/**
 * Makes notes louder, or softer.
 * @param {Piece} piece
 * @param {Set<string>} keys
 * @param {number} by
 */
export function loudened(piece, keys, by) {
  return changed(piece, keys, ([onset, duration, pitch, velocity, ...rest]) => [
    onset,
    duration,
    pitch,
    Math.max(1, Math.min(127, velocity + by)),
    ...rest,
  ]);
}

/**
 * Puts notes on the grid, their lengths, too.
 * @param {Piece} piece
 * @param {Set<string>} keys
 * @param {string} grid
 */
export function quantized(piece, keys, grid) {
  return changed(piece, keys, ([onset, duration, ...rest]) => {
    const begin = snap(piece, grid, onset);
    const unit = gridSteps(piece, grid, where(piece, onset).bar);
    const length = Math.max(1, Math.round(duration / unit)) * unit;
    return [begin, Math.round(length), ...rest];
  });
}

/**
 * Some bars of a piece, as a piece: notes that sound beyond them end with them.
 * @param {Piece} piece
 * @param {[first: number, end: number]} bars
 * @returns {Piece}
 */
export function excerpt(piece, [first, end]) {
  const starts = barStarts(piece);
  const [from, to] = [starts[first], starts[end]];
  const notes = piece.notes
    .filter(([onset]) => onset >= from && onset < to)
    .map(([onset, duration, ...rest]) => [onset - from, Math.min(duration, to - onset), ...rest]);
  return {
    ...piece,
    notes: /** @type {Note[]} */ (notes),
    bars: piece.bars.slice(first, end),
    tempo: piece.tempo.slice(first, end),
  };
}

/**
 * Notes of a piece for another, whose named parts may be others: they keep their instruments.
 * @param {Note[]} notes
 * @param {Piece["parts"]} from
 * @param {Piece["parts"]} to
 */
export function fitted(notes, from, to) {
  if (JSON.stringify(from) === JSON.stringify(to)) return notes;
  return notes.map((note) => {
    const midi = from?.[note[4]]?.[1] ?? generalOf(note[4]);
    return /** @type {Note} */ (note.with(4, to && midi !== DRUMS ? UNNAMED + midi : midi));
  });
}

/**
 * Puts notes that were copied elsewhere, the first of them at a step.
 * @param {Piece} piece
 * @param {Note[]} notes
 * @param {number} step
 */
export function pasted(piece, notes, step) {
  const first = Math.min(...notes.map((note) => note[0]));
  return replaced(
    piece,
    [],
    notes.map(([onset, ...note]) => [onset - first + step, ...note]),
  );
}
