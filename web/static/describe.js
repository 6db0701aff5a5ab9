// Variations in words: which are the best, how they end, what tells them apart.
import { pitchClass, pitched } from "./piece.js";

/** @import { Note, Piece } from "./piece.js" */

// of some variations the best first, to a critic of style, or by how likely the model finds each
const BY_STYLE = [
  "truest to its style",
  "second truest",
  "third truest",
  "least true to its style",
];
const BY_CHANCE = ["likeliest", "second likeliest", "third likeliest", "least likely"];
const BEYOND = "out of its style"; // it loops, or is far too empty or too full
const TRIADS = /** @type {const} */ ([
  ["0,4,7", "major"],
  ["0,3,7", "minor"],
]);

/**
 * How good each of several variations is, as the server ranks them; a single one needs no words.
 * @param {{ order: number[], beyond: boolean[], has_critic: boolean }} ranked
 */
export function ranks({ order, beyond, has_critic: isByStyle }) {
  const words = isByStyle ? BY_STYLE : BY_CHANCE;
  const last = order.length - 1;
  return order.map((_, number) => {
    const place = order.indexOf(number);
    if (last < 1 || beyond[number]) return beyond[number] ? BEYOND : "";
    return words[place === last ? words.length - 1 : place];
  });
}

/**
 * How a piece ends: on a chord, or on a note.
 * @param {Piece} piece
 */
export function ending({ notes }) {
  const own = pitched(notes);
  const last = own.at(-1);
  if (!last) return "";
  const sounding = own.filter(([onset, duration]) => onset + duration > last[0]);
  const classes = new Set(sounding.map((note) => note[2] % 12));
  for (const root of classes) {
    const above = [...classes].map((each) => (each - root + 12) % 12).sort((a, b) => a - b);
    const triad = TRIADS.find(([intervals]) => intervals === above.join());
    if (triad) return `ends on ${pitchClass(root)} ${triad[1]}`;
  }
  const bass = Math.min(...sounding.map((note) => note[2]));
  return `ends on ${pitchClass(bass)}`;
}

/**
 * What tells variations apart: the words for most and for least, and the measure.
 * @type {[most: string, least: string, measure: (notes: Note[]) => number][]}
 */
const TRAITS = [
  ["busiest", "calmest", (notes) => new Set(notes.map((note) => note[0])).size],
  ["most leaps", "smoothest", leaps],
  ["lowest bass", "highest bass", (notes) => -Math.min(...notes.map((note) => note[2]))],
  ["highest top", "lowest top", (notes) => Math.max(...notes.map((note) => note[2]))],
];
const MOST_TRAITS = 2; // of a variation

/**
 * Semitones from note to note of the same voice, in the mean.
 * @param {Note[]} notes
 */
function leaps(notes) {
  /** @type {Map<number, number>} */
  const before = new Map();
  const apart = notes.flatMap(([, , pitch, , program]) => {
    const last = before.get(program);
    before.set(program, pitch);
    return last === undefined ? [] : [Math.abs(pitch - last)];
  });
  return apart.reduce((sum, each) => sum + each, 0) / Math.max(1, apart.length);
}

/**
 * What each of several pieces has most, or least, of what the model wrote in them, alone among them.
 * @param {Piece[]} pieces
 */
export function traits(pieces) {
  /** @type {string[][]} */
  const words = pieces.map(() => []);
  const written = pieces.map(({ notes }) => pitched(notes).filter((note) => !note[5]));
  if (pieces.length < 2 || written.some((notes) => !notes.length)) return words;
  for (const [most, least, measure] of TRAITS) {
    const values = written.map(measure);
    for (const [word, extreme] of /** @type {const} */ ([
      [most, Math.max(...values)],
      [least, Math.min(...values)],
    ])) {
      const [first, ...others] = values.flatMap((value, at) => (value === extreme ? [at] : []));
      if (!others.length && words[first].length < MOST_TRAITS) words[first].push(word);
    }
  }
  return words;
}

/**
 * Which long run of notes of a variation a training piece has, too: the longest, if there is one.
 * @param {[notes: number, piece: string][]} runs
 */
export const copied = (runs) =>
  runs.map(([notes, piece]) => `${notes} notes as in “${piece}”`).join(", ");

/**
 * Variations in words, each by what is known of it, and by what the others have not.
 * @param {Piece[]} pieces
 * @param {(string | undefined)[]} places how good each is, in words, as far as that is known
 * @param {(string | undefined)[]} copies what training pieces have of each, likewise
 */
export function described(pieces, places, copies) {
  const apart = traits(pieces);
  return pieces.map((piece, number) =>
    [places[number], ending(piece), ...apart[number], copies[number]].filter(Boolean).join(", "),
  );
}
