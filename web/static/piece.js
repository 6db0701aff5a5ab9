// A piece as the server knows it: notes, bars, and a tempo a bar. Nothing here changes one.

/**
 * Times are in grid steps; `own` is 1 for a note that a person put in.
 * @typedef {[onset: number, duration: number, pitch: number, velocity: number, program: number,
 *   own: number]} Note
 * @typedef {[numerator: number, denominator: number, length: number]} Bar
 * @typedef {{ notes: Note[], bars: Bar[], tempo: [bpm: number][], grid: "beats" | "seconds",
 *   steps: number, parts?: [name: string, midi: number][], meter?: unknown }} Piece
 * @typedef {{ seconds: (step: number) => number, step: (seconds: number) => number }} Clock
 */

/**
 * What a model plays.
 * @typedef {{ programs: [program: number, name: string, midi: number,
 *   range: [low: number, high: number]][], meters: Meter[], usual_meter: Meter,
 *   tempo: number, tempi: [slowest: number, fastest: number], pitches: [low: number, high: number],
 *   velocity: number, has_loudness: boolean, rests: boolean, grid: "beats" | "seconds",
 *   steps: number, parts?: [name: string, midi: number][], names: string[], drums: string[],
 *   tune: number | null, meter?: unknown, temperature: number, trained: number }} Plays
 * @typedef {[numerator: number, denominator: number]} Meter
 */

const NAMES = ["C", "C♯", "D", "E♭", "E", "F", "F♯", "G", "A♭", "A", "B♭", "B"];
export const DRUMS = 128;
export const UNNAMED = DRUMS + 1; // program 0 of General MIDI where none of the named parts plays it
export const [SLOWEST, FASTEST] = [16, 300]; // tempi that a piece can have

/** @param {number} pitch */
export const pitchClass = (pitch) => NAMES[pitch % 12];
/** @param {number} pitch */
export const noteName = (pitch) => pitchClass(pitch) + (Math.floor(pitch / 12) - 1);
/** @param {number} pitch */
export const isBlack = (pitch) => [1, 3, 6, 8, 10].includes(pitch % 12);
/** @param {number} program of a note that no named part plays */
export const generalOf = (program) => (program > DRUMS ? program - UNNAMED : program);
/** @param {Note} note */
export const keyOf = (note) => `${note[0]}/${note[4]}/${note[2]}`;

/**
 * @param {Piece} piece
 * @param {Note} note
 */
export const numberIn = (piece, note) => piece.notes.findIndex((its) => keyOf(its) === keyOf(note));

/**
 * Steps of a whole bar.
 * @param {number} numerator
 * @param {number} denominator
 * @param {number} steps of a quarter
 */
export const barSteps = (numerator, denominator, steps) =>
  Math.ceil((numerator * 4 * steps) / denominator);

/** @param {Piece} piece */
const hasUpbeat = ({ bars: [[numerator, denominator, length]], steps }) =>
  length < barSteps(numerator, denominator, steps);

/**
 * Steps of a beat: of three eighths in 6/8, 9/8 and 12/8.
 * @param {number} numerator
 * @param {number} denominator
 * @param {number} steps of a quarter
 */
const beatSteps = (numerator, denominator, steps) => {
  const isCompound = numerator % 3 === 0 && numerator > 3 && denominator >= 8;
  return ((isCompound ? 3 : 1) * 4 * steps) / denominator;
};

/**
 * @param {Plays} plays
 * @param {Meter} meter
 * @param {number} tempo
 * @returns {Piece}
 */
export function emptyPiece(plays, meter, tempo) {
  const [numerator, denominator] = plays.grid === "seconds" ? [1, 4] : meter;
  return {
    notes: [],
    bars: [[numerator, denominator, barSteps(numerator, denominator, plays.steps)]],
    tempo: [[Math.min(FASTEST, Math.max(SLOWEST, Math.round(tempo)))]],
    grid: plays.grid,
    steps: plays.steps,
    ...(plays.parts ? { parts: plays.parts } : {}),
    ...(plays.meter ? { meter: plays.meter } : {}),
  };
}

/**
 * Where each bar begins, and where the last one ends.
 * @param {Piece} piece
 */
export function barStarts(piece) {
  const starts = [0];
  for (const bar of piece.bars) starts.push(starts[starts.length - 1] + bar[2]);
  return starts;
}

/** @param {Piece} piece */
export const lastEnd = (piece) =>
  piece.notes.reduce((end, note) => Math.max(end, note[0] + note[1]), 0);

/**
 * The piece with these notes, in order, and with enough bars for them.
 * @param {Piece} piece
 * @param {Note[]} notes
 * @returns {Piece}
 */
export function withNotes(piece, notes) {
  const ordered = [...notes].sort((a, b) => a[0] - b[0] || a[4] - b[4] || a[2] - b[2]);
  const room = withRoom(piece, (ordered.at(-1)?.[0] ?? -1) + 1);
  return { ...room, notes: ordered };
}

/**
 * The piece with some more bars like its last.
 * @param {Piece} piece
 * @param {number} count
 * @returns {Piece}
 */
export function withBars(piece, count) {
  const [numerator, denominator] = piece.bars.at(-1) ?? [4, 4];
  const length = barSteps(numerator, denominator, piece.steps);
  const tempo = piece.tempo.at(-1) ?? [96];
  /** @type {Bar[]} */
  const bars = Array.from({ length: count }, () => [numerator, denominator, length]);
  return {
    ...piece,
    bars: [...piece.bars, ...bars],
    tempo: [...piece.tempo, ...bars.map(() => tempo)],
  };
}

/**
 * The piece with bars up to a step.
 * @param {Piece} piece
 * @param {number} step
 */
export function withRoom(piece, step) {
  const end = piece.bars.reduce((sum, bar) => sum + bar[2], 0);
  const [numerator, denominator] = piece.bars.at(-1) ?? [4, 4];
  const missing = Math.ceil((step - end) / barSteps(numerator, denominator, piece.steps));
  return missing > 0 ? withBars(piece, missing) : piece;
}

/**
 * The piece without empty bars at its end; so many bars stay.
 * @param {Piece} piece
 * @param {number} least
 * @returns {Piece}
 */
export function withoutEmptyEnd(piece, least) {
  const count = Math.max(least, where(piece, lastEnd(piece) - 1).bar + 1);
  return { ...piece, bars: piece.bars.slice(0, count), tempo: piece.tempo.slice(0, count) };
}

/**
 * The number of a bar as people count, and its beats: one in each row, [beat from 1, its step].
 * A bar after the last is like the last; an upbeat has the last beats of a whole bar.
 * @param {Piece} piece
 * @param {number} bar
 */
export function barOf(piece, bar) {
  const [numerator, denominator, ownLength] = piece.bars[bar] ?? piece.bars[piece.bars.length - 1];
  const whole = barSteps(numerator, denominator, piece.steps);
  const length = bar < piece.bars.length ? ownLength : whole;
  const beat = beatSteps(numerator, denominator, piece.steps);
  const missing = bar === 0 ? whole - length : 0;
  const beats = [];
  for (let number = 1; (number - 1) * beat < whole; number++) {
    const step = (number - 1) * beat - missing;
    if (step >= 0 && step < length) beats.push([number, step]);
  }
  return { number: bar + (hasUpbeat(piece) ? 0 : 1), beat, missing, beats };
}

/**
 * The beats from the beginning of a bar on, without end: their steps, and whether a bar begins.
 * @param {Piece} piece
 * @param {number} bar
 */
export function* beatsFrom(piece, bar) {
  const starts = barStarts(piece);
  for (let start = starts[bar]; ; bar++) {
    for (const [number, step] of barOf(piece, bar).beats) {
      yield { step: start + step, isFirst: number === 1 };
    }
    const [numerator, denominator] = piece.bars[piece.bars.length - 1];
    start = starts[bar + 1] ?? start + barSteps(numerator, denominator, piece.steps);
  }
}

/**
 * Seconds at which a step falls, and back: functions, since the sums are made once.
 * @param {Piece} piece
 * @returns {Clock}
 */
export function clockOf(piece) {
  const starts = barStarts(piece);
  const seconds = [0];
  const perStep = piece.tempo.map(([bpm]) => 60 / bpm / piece.steps);
  piece.bars.forEach((bar, at) => seconds.push(seconds[at] + bar[2] * perStep[at]));
  const last = piece.bars.length - 1;
  return {
    seconds: (step) => {
      const bar = Math.min(last, lastUpTo(starts, step));
      return seconds[bar] + (step - starts[bar]) * perStep[bar];
    },
    step: (time) => {
      const bar = Math.min(last, lastUpTo(seconds, time));
      return starts[bar] + (time - seconds[bar]) / perStep[bar];
    },
  };
}

/**
 * The place of the last number of a rising list that is at most a value; at least 0.
 * @param {number[]} list
 * @param {number} value
 */
function lastUpTo(list, value) {
  let low = 0;
  let high = list.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (list[middle] <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

/**
 * The bar of a step: its place in the list, its number as people count, and the beat.
 * @param {Piece} piece
 * @param {number} step
 */
export function where(piece, step) {
  const starts = barStarts(piece);
  const bar = Math.min(piece.bars.length - 1, lastUpTo(starts, step));
  const { number, beat, missing } = barOf(piece, bar);
  const place = (step - starts[bar] + missing) / beat + 1;
  return { bar, number, beat: Math.round(place * 100) / 100 };
}

/**
 * A number of things in words: "1 note", "2 notes".
 * @param {number} number
 * @param {string} noun
 */
export const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/**
 * Bars in words: "Bar 3", "Bars 3 to 5".
 * @param {Piece} piece
 * @param {[first: number, end: number]} bars
 */
export function describeBars(piece, [first, end]) {
  const [from, to] = [first, end - 1].map((bar) => barOf(piece, bar).number);
  return from === to ? `Bar ${from}` : `Bars ${from} to ${to}`;
}

/**
 * The notes that have a pitch: all but the drums'.
 * @param {Note[]} notes
 */
export const pitched = (notes) => notes.filter((note) => note[4] !== DRUMS);

/**
 * A piece in words, by which one knows it again: how its highest voice begins, and its length.
 * @param {Piece} piece
 */
export function inWords({ notes, bars }) {
  const names = [];
  let top = { pitch: 0, onset: -1, end: 0 };
  const high = pitched(notes).sort((a, b) => a[0] - b[0] || b[2] - a[2]);
  for (const [onset, duration, pitch] of high) {
    const isBelow = onset === top.onset || (pitch < top.pitch && onset < top.end);
    if (isBelow) continue;
    top = { pitch, onset, end: onset + duration };
    names.push(noteName(pitch));
  }
  const begin = names.slice(0, 5).join(" ") + (names.length > 5 ? " …" : "");
  const who = begin || (notes.length ? "Drums" : "");
  return `${who} (${counted(bars.length, "bar")})`;
}

/**
 * The beats of a piece: their steps, and whether a bar begins.
 * @param {Piece} piece
 */
export function beatsOf(piece) {
  const starts = barStarts(piece);
  return piece.bars.flatMap((_, bar) =>
    barOf(piece, bar).beats.map(([number, step]) => ({
      step: starts[bar] + step,
      isFirst: number === 1,
    })),
  );
}

/**
 * Whether something that came out of a link is a piece; the server checks the rest.
 * @param {any} value
 * @returns {value is Piece}
 */
export function isPiece(value) {
  return (
    Boolean(value) &&
    areRows(value.notes, 6) &&
    areRows(value.bars, 3) &&
    areRows(value.tempo, 1) &&
    value.bars.length > 0 &&
    value.bars.length === value.tempo.length &&
    value.bars.every((/** @type {Bar} */ bar) => bar[0] && bar[1] && bar[2]) &&
    value.tempo.every((/** @type {[number]} */ [bpm]) => bpm >= SLOWEST) &&
    Number.isInteger(value.steps) &&
    value.steps > 0
  );
}

/**
 * @param {any} list
 * @param {number} width
 * @returns {list is number[][]}
 */
const areRows = (list, width) =>
  Array.isArray(list) &&
  list.length <= 8192 &&
  list.every(
    (row) =>
      Array.isArray(row) &&
      row.length === width &&
      row.every((n) => Number.isInteger(n) && n >= 0 && n < 2 ** 21),
  );
