// Variations in words: how likely they are, how they end, how they move.
import { pitchClass } from "./piece.js";

/** @import { Piece } from "./piece.js" */

const ORDER = ["likeliest", "second likeliest", "third likeliest"];
const TRIADS = /** @type {const} */ ([
  ["0,4,7", "major"],
  ["0,3,7", "minor"],
]);

/**
 * The place of each of several numbers, the lowest first, in words; of fewer than two, nothing.
 * @param {(number | undefined)[]} nats how unlikely each is
 */
export function ranks(nats) {
  const known = nats.filter((each) => each !== undefined);
  if (known.length < 2 || known.length < nats.length) return nats.map(() => "");
  const order = [...known].sort((a, b) => a - b);
  return known.map((each) => {
    const place = order.indexOf(each);
    return place === known.length - 1 ? "least likely" : ORDER[place];
  });
}

/**
 * How a piece ends: on a chord, or on a note.
 * @param {Piece} piece
 */
export function ending({ notes }) {
  const last = notes.at(-1);
  if (!last) return "";
  const sounding = notes.filter(([onset, duration]) => onset + duration > last[0]);
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
 * How fast the model's own notes follow each other.
 * @param {Piece} piece
 */
export function motion({ notes, steps }) {
  const onsets = new Set(notes.filter((note) => !note[5]).map((note) => note[0]));
  if (onsets.size < 2) return "";
  const beats = (Math.max(...onsets) - Math.min(...onsets)) / steps;
  const perBeat = (onsets.size - 1) / beats;
  return perBeat < 0.9 ? "calm" : perBeat < 1.6 ? "moving" : "busy";
}

/**
 * Variations in words, each by what is known of it.
 * @param {Piece[]} pieces
 * @param {(number | undefined)[]} nats
 */
export function described(pieces, nats) {
  const places = ranks(nats);
  return pieces.map((piece, number) =>
    [places[number], ending(piece), motion(piece)].filter(Boolean).join(", "),
  );
}
