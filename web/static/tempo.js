// The tempo of what is played freely, and the beat on which an answer to it begins.
import { beatsFrom, barOf, barStarts } from "./piece.js";

/** @import { Piece } from "./piece.js" */

const CHORD = 0.06; // seconds within which keys are struck together
const MIDDLE = 100; // beats a minute: what is far from it is less likely felt as the beat

/**
 * The tempo in which notes lie best on beats and their halves.
 * @param {number[]} onsets seconds
 * @param {[slowest: number, fastest: number]} range quarter notes a minute
 * @param {number} usual where there are too few notes to tell
 */
export function tempoOf(onsets, [slowest, fastest], usual) {
  const apart = gaps(onsets);
  if (!apart.length) return usual;
  const total = apart.reduce((sum, gap) => sum + gap, 0);
  let best = usual;
  let least = Infinity;
  for (let tempo = slowest; tempo <= fastest; tempo++) {
    const halves = apart.map((gap) => (gap * tempo) / 30);
    const counts = halves.map((count) => Math.max(1, Math.round(count)));
    const away = mean(counts.map((count, at) => (count - halves[at]) ** 2));
    let place = 0;
    const offBeat = mean(counts.map((count) => (place += count) % 2));
    const unusual = Math.log2(tempo / MIDDLE) ** 2;
    const cost = 4 * away + 0.15 * offBeat + 0.1 * unusual;
    if (cost >= least) continue;
    [least, best] = [cost, (30 * counts.reduce((sum, count) => sum + count, 0)) / total];
  }
  return Math.max(slowest, Math.min(fastest, Math.round(best)));
}

/** @param {number[]} onsets seconds */
function gaps(onsets) {
  /** @type {number[]} */
  const apart = [];
  const [first, ...rest] = [...onsets].sort((a, b) => a - b);
  let last = first;
  for (const onset of rest) {
    if (onset - last < CHORD) continue;
    apart.push(onset - last);
    last = onset;
  }
  return apart;
}

/** @param {number[]} numbers */
const mean = (numbers) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;

/**
 * The first beat after a pause: of a bar, of a beat, or of none.
 * @param {Piece} piece
 * @param {number} end the step at which the last note ends
 * @param {string} pause "bar", "beat", or ""
 * @param {(step: number) => boolean} isInTime whether the beat can still be met
 */
export function answerStep(piece, end, pause, isInTime) {
  const starts = barStarts(piece);
  const found = starts.findLastIndex((start) => start <= end);
  const { beat, beats } = barOf(piece, found);
  const silence = { bar: beat * beats.length, beat }[pause] ?? 0;
  for (const { step } of beatsFrom(piece, Math.min(found, piece.bars.length - 1)))
    if (step >= end + silence && isInTime(step)) return step;
  return end;
}
