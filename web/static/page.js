// What the page knows, and who is told when that changes.
import { byId, field } from "./dom.js";
import { DRUMS, emptyPiece, lastEnd, noteName, pitched, where, withNotes } from "./piece.js";
import { Session, VARIATIONS } from "./session.js";
import { MOST_BARS, Settings } from "./settings.js";
import { Sound } from "./sound.js";

/**
 * @import { Note, Piece, Plays } from "./piece.js"
 * @import { Ask, State } from "./session.js"
 *
 * What is being written: `base` is what was there, in so many `bars`, with empty ones for what comes;
 * `rows` are the notes of each variation, of which one is heard; `opens` is the first step that is
 * written.
 * @typedef {{ base: Piece, bars: number, ask: Ask, rows: Note[][], row: number, opens: number,
 *   changes: string[], pulse?: number, shown?: { count: number, row: number, piece: Piece }
 *   }} Writing
 *
 * "show": what there is, is another; "draw": it is to be drawn anew; "settle": what goes on is to
 * end, and nothing of it to be lost; "server": it is there, or gone;
 * "asked": what is asked for, is another; "tempo": so is the tempo;
 * "select": other bars are selected; "forget": nothing is selected any more.
 * @typedef {"show" | "draw" | "settle" | "server" | "asked" | "tempo" | "select" | "forget"
 *   } Happening
 */

export const session = new Session();
export const sound = new Sound();
export const settings = new Settings(
  () => tell("asked"),
  () => tell("tempo"),
);

export const page = {
  /** @type {Plays | null} what the model that is chosen plays */
  plays: null,
  /** @type {Writing | null} */
  writing: null,
  isAsked: false, // for a piece, of which nothing has come
  isServed: false,
  cursor: 0, // the step from which "play" plays
  seed: Math.floor(Math.random() * 2 ** 31),
};

/** @type {Map<string, (() => void)[]>} */
const listeners = new Map();

/**
 * Calls a function whenever something happens.
 * @param {Happening} happening
 * @param {() => void} listener
 */
export function on(happening, listener) {
  listeners.set(happening, [...(listeners.get(happening) ?? []), listener]);
}

/** @param {Happening} happening */
export function tell(happening) {
  for (const listener of listeners.get(happening) ?? []) listener();
}

/** What there is: of what is being written, the variation that is heard. */
export function current() {
  const { writing } = page;
  if (!writing) return session.now?.piece ?? null;
  const row = writing.rows[writing.row];
  if (writing.shown?.count !== row.length || writing.shown.row !== writing.row) {
    const piece = withNotes(writing.base, [...writing.base.notes, ...row]);
    writing.shown = { count: row.length, row: writing.row, piece };
  }
  return writing.shown.piece;
}

/** A piece without notes, as the settings ask for it. */
export function freshPiece() {
  const plays = /** @type {Plays} */ (page.plays);
  const { meter, tempo } = settings.get();
  return emptyPiece(plays, meter ?? plays.usual_meter, tempo ?? plays.tempo);
}

export const startedPiece = () =>
  session.now?.piece.notes.length ? session.now.piece : freshPiece();

/**
 * Goes on to another piece, which can be undone.
 * @param {Piece} piece
 * @param {string} label
 * @param {Partial<State>} more
 */
export function change(piece, label, more = {}) {
  const before = session.at >= 0 ? session.at : null;
  const { tune = newTune(), chords = [] } = session.now ?? {};
  const state = { tune, piece, label, before, written: null, variations: null, chosen: 0, chords };
  session.push({ ...state, ...more });
  tell("show");
}

/** A name for other music than there was. */
export const newTune = () => crypto.getRandomValues(new Uint32Array(2)).join("");

/**
 * Goes on to an edited piece; among the variations it replaces the one that is heard.
 * @param {Piece} piece
 * @param {string} label
 * @param {Partial<State>} more
 */
export function edit(piece, label, more = {}) {
  const { variations = null, chosen = 0 } = session.now ?? {};
  const edited = variations?.map((each, number) => (number === chosen ? piece : each)) ?? null;
  change(piece, label, { variations: edited, chosen, ...more });
}

/**
 * What to ask of the model that is chosen.
 * @param {string} how
 * @param {Partial<Ask>} more
 * @returns {Ask}
 */
export function request(how, more = {}) {
  const piece = startedPiece();
  const asked = settings.get();
  if (how === "harmonize" || how === "rewrite") asked.meter = null; // the bars are there
  const hasAnyTempo = page.plays && page.plays.tempi[0] === page.plays.tempi[1];
  if (hasAnyTempo && page.plays?.grid === "beats" && piece.grid === "beats")
    asked.tempo ??= piece.tempo[0][0]; // its own one
  const { chords = [] } = session.now ?? {};
  const { bar } = where(piece, lastEnd(piece) - 1);
  const bars = Math.min(
    MOST_BARS,
    Math.max(asked.bars, chords.length - (piece.notes.length && bar + 1)),
  );
  return {
    model: model(),
    how,
    piece,
    settings: { ...asked, bars, bar_chords: chords },
    variations: VARIATIONS,
    random_seed: page.seed,
    ...more,
  };
}

/** A number that nothing was asked with before. */
export const newSeed = () => (page.seed = (page.seed + 1) % 2 ** 31);

export const model = () => field("model").value;
/** Whether the model writes, or was asked to: what it was given stays as it is until then. */
export const isWriting = () => Boolean(page.writing) || page.isAsked;
export const isReady = () => Boolean(page.plays) && page.isServed;

/**
 * Whether a piece has other parts than the model that is chosen: its programs are other players.
 * @param {Piece | null | undefined} piece
 */
const isForeign = (piece) =>
  Boolean(piece?.notes.length) &&
  JSON.stringify(piece?.parts ?? null) !== JSON.stringify(page.plays?.parts ?? null);

/**
 * What a note is called: by its pitch, or the drum that is struck.
 * @param {number} pitch
 * @param {number} program
 */
export const soundOf = (pitch, program) =>
  (program === DRUMS && page.plays?.drums[pitch]) || noteName(pitch);

/** @param {number} program */
export function nameOf(program) {
  const piece = current();
  const { programs = [], names = [] } = page.plays ?? {};
  const own = programs.find(([number]) => number === program);
  if (own && !isForeign(piece)) return own[1];
  return piece?.parts?.[program]?.[0] ?? names[program % names.length];
}

/** General MIDI's programs of the parts that what there is has, or the model that is chosen. */
export function instruments() {
  const piece = current();
  const programs = page.plays?.programs ?? [];
  return new Map(
    isForeign(piece)
      ? piece?.parts?.map(([, midi], part) => [part, midi])
      : programs.map(([program, , midi]) => [program, midi]),
  );
}

/** Who plays one's own notes: who is chosen, or in another model's piece somebody who is in it. */
export function ownVoice() {
  const piece = session.now?.piece;
  if (!piece || !isForeign(piece)) return Number(field("voice").value);
  const { notes } = piece;
  return (notes.findLast((note) => note[5]) ?? pitched(notes)[0] ?? notes[0])[4];
}

/**
 * A note that a person puts in, with the instrument that is chosen; as loud as it was played, if the
 * model knows of that.
 * @param {[onset: number, duration: number, pitch: number, velocity?: number]} played
 * @returns {Note}
 */
export const ownNote = ([onset, duration, pitch, velocity]) => [
  onset,
  duration,
  pitch,
  (page.plays?.has_loudness && velocity) || (page.plays?.velocity ?? 80),
  ownVoice(),
  1,
];

/** Whether what is said is that something cannot be. */
export const isBad = () => byId("status").classList.contains("bad");
