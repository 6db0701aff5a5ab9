// A piece as the server knows it: notes are [onset, duration, pitch, velocity, program, own], times
// in grid steps; bars are [numerator, denominator, length]; a tempo a bar. Nothing here changes one.

const NAMES = ["C", "C♯", "D", "E♭", "E", "F", "F♯", "G", "A♭", "A", "B♭", "B"];

export const noteName = (pitch) => NAMES[pitch % 12] + (Math.floor(pitch / 12) - 1);
export const keyOf = (note) => `${note[0]}/${note[4]}/${note[2]}`;
export const barSteps = (numerator, denominator, steps) =>
  Math.ceil((numerator * 4 * steps) / denominator);
const hasUpbeat = ({ bars: [[numerator, denominator, length]], steps }) =>
  length < barSteps(numerator, denominator, steps);

// Steps of a beat: of three eighths in 6/8, 9/8 and 12/8.
const beatSteps = (numerator, denominator, steps) => {
  const isCompound = numerator % 3 === 0 && numerator > 3 && denominator >= 8;
  return ((isCompound ? 3 : 1) * 4 * steps) / denominator;
};

export function emptyPiece(plays, meter, tempo) {
  const [numerator, denominator] = plays.grid === "seconds" ? [1, 4] : meter;
  return {
    notes: [],
    bars: [[numerator, denominator, barSteps(numerator, denominator, plays.steps)]],
    tempo: [[Math.min(300, Math.max(16, Math.round(tempo)))]],
    grid: plays.grid,
    steps: plays.steps,
    ...(plays.parts && { parts: plays.parts }),
    ...(plays.meter && { meter: plays.meter }),
  };
}

// Where each bar begins, and where the last one ends.
export function barStarts(piece) {
  const starts = [0];
  for (const bar of piece.bars) starts.push(starts.at(-1) + bar[2]);
  return starts;
}

export const lastEnd = (piece) =>
  piece.notes.reduce((end, note) => Math.max(end, note[0] + note[1]), 0);

// The piece with enough bars for all its notes, the notes in order.
export function withNotes(piece, notes) {
  const bars = [...piece.bars],
    tempo = [...piece.tempo];
  const ordered = [...notes].sort((a, b) => a[0] - b[0] || a[4] - b[4] || a[2] - b[2]);
  let end = bars.reduce((sum, bar) => sum + bar[2], 0);
  const last = ordered.length ? ordered.at(-1)[0] : 0;
  while (last >= end) {
    const [numerator, denominator] = bars.at(-1);
    bars.push([numerator, denominator, barSteps(numerator, denominator, piece.steps)]);
    tempo.push(tempo.at(-1));
    end += bars.at(-1)[2];
  }
  return { ...piece, notes: ordered, bars, tempo };
}

// The piece with some more bars like its last.
export function withBars(piece, count) {
  const [numerator, denominator] = piece.bars.at(-1) ?? [4, 4],
    length = barSteps(numerator, denominator, piece.steps);
  const tempo = piece.tempo.at(-1) ?? [96];
  return {
    ...piece,
    bars: [...piece.bars, ...Array.from({ length: count }, () => [numerator, denominator, length])],
    tempo: [...piece.tempo, ...Array.from({ length: count }, () => tempo)],
  };
}

// The piece with bars up to a step.
export function withRoom(piece, step) {
  const end = barStarts(piece).at(-1),
    [numerator, denominator] = piece.bars.at(-1);
  const missing = Math.ceil((step - end) / barSteps(numerator, denominator, piece.steps));
  return missing > 0 ? withBars(piece, missing) : piece;
}

// The number of a bar as people count, and its beats: one in each row, [beat from 1, its step].
// A bar after the last is like the last; an upbeat has the last beats of a whole bar.
export function barOf(piece, bar) {
  const [numerator, denominator, its] = piece.bars[bar] ?? piece.bars.at(-1);
  const whole = barSteps(numerator, denominator, piece.steps),
    length = bar < piece.bars.length ? its : whole,
    beat = beatSteps(numerator, denominator, piece.steps);
  const missing = bar === 0 ? whole - length : 0;
  const beats = [];
  for (let number = 1; (number - 1) * beat < whole; number++) {
    const step = (number - 1) * beat - missing;
    if (step >= 0 && step < length) beats.push([number, step]);
  }
  return { number: bar + (hasUpbeat(piece) ? 0 : 1), beat, missing, beats };
}

// The beats from the beginning of a bar on, without end: their steps, and whether a bar begins.
export function* beatsFrom(piece, bar) {
  const starts = barStarts(piece);
  for (let start = starts[bar]; ; bar++) {
    for (const [number, step] of barOf(piece, bar).beats) {
      yield { step: start + step, isFirst: number === 1 };
    }
    const [numerator, denominator] = piece.bars.at(-1);
    start = starts[bar + 1] ?? start + barSteps(numerator, denominator, piece.steps);
  }
}

// Seconds at which a step falls: a function, since the sums are made once.
export function clockOf(piece) {
  const starts = barStarts(piece),
    seconds = [0];
  const perStep = piece.tempo.map(([bpm]) => 60 / bpm / piece.steps);
  piece.bars.forEach((bar, at) => seconds.push(seconds[at] + bar[2] * perStep[at]));
  const barAt = (list, value) => {
    let low = 0,
      high = piece.bars.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (list[middle] <= value) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  return {
    seconds: (step) => {
      const bar = barAt(starts, step);
      return seconds[bar] + (step - starts[bar]) * perStep[bar];
    },
    step: (time) => {
      const bar = barAt(seconds, time);
      return starts[bar] + (time - seconds[bar]) / perStep[bar];
    },
  };
}

// The bar of a step: its index, its number as people count, and the beat.
export function where(piece, step) {
  const starts = barStarts(piece);
  let bar = starts.findIndex((start) => start > step) - 1;
  if (bar < 0) bar = piece.bars.length - 1;
  const { number, beat, missing } = barOf(piece, bar);
  const place = (step - starts[bar] + missing) / beat + 1;
  return { bar, number, beat: Math.round(place * 100) / 100 };
}

// Whether something that came out of a link is a piece; the server checks the rest.
export function isPiece(value) {
  const rows = (list, width) =>
    Array.isArray(list) &&
    list.length <= 4096 &&
    list.every(
      (row) =>
        Array.isArray(row) &&
        row.length === width &&
        row.every((n) => Number.isInteger(n) && n >= 0 && n < 2 ** 21),
    );
  return (
    Boolean(value) &&
    rows(value.notes, 6) &&
    rows(value.bars, 3) &&
    rows(value.tempo, 1) &&
    value.bars.length > 0 &&
    value.bars.length === value.tempo.length &&
    value.bars.every((bar) => bar[0] && bar[1] && bar[2]) &&
    value.tempo.every(([bpm]) => bpm >= 16) &&
    Number.isInteger(value.steps) &&
    value.steps > 0
  );
}
