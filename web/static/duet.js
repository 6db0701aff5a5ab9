// Duet: one plays, and where one pauses the model answers in time, until one plays again.
import { server } from "./connection.js";
import { byId, field, say, turn } from "./dom.js";
import { change, current, freshPiece, newSeed, on, page, request, settings } from "./page.js";
import { sound, startedPiece, tell } from "./page.js";
import { excerpt } from "./edit.js";
import { barOf, barStarts, clockOf, lastEnd, where, withNotes } from "./piece.js";
import { retimed, timeOf } from "./record.js";
import { recorder, withPlayed } from "./recording.js";
import { VARIATIONS } from "./session.js";
import { redraw } from "./stage.js";
import { answerStep, tempoOf } from "./tempo.js";
import { player } from "./transport.js";
import { hearer } from "./writing.js";

/**
 * @import { Note, Piece } from "./piece.js"
 * @import { Recording } from "./record.js"
 * @import { Ask } from "./session.js"
 * @import { Writing } from "./page.js"
 * @import { Told } from "./server.js"
 *
 * An answer that is written while one still listens: it is heard from its step on if nobody plays
 * until then; `told` is what came before.
 * @typedef {{ ask: Ask, told: Told[], hear: ((told: Told) => void) | null }} Draft
 */

const WAIT = 0.1; // seconds without a key, after which an answer is asked for
const READY = 0.25; // seconds that it has at least until its beat
const LEAD = 0.2; // seconds before its beat at which it is taken
const GO_ON = 6; // seconds before its end, after which it goes on
const [SLOW, QUICK] = [50, 180]; // quarter notes a minute of what is played freely

let isPlaying = false; // a duet
let hasAnswered = false; // the model, in this duet
let isFree = false; // its tempo is that of what is played first
let released = 0; // when the last key was, by the audio clock
let late = 0; // answers that were not there in time, one after the other
/** @type {Draft | null} */
let draft = null;
/** @type {Piece | null} that the model was asked to go on with */
let goneOn = null;

export const isDuet = () => isPlaying;

/**
 * @param {number} pitch
 * @param {number} velocity 0: the usual one
 * @param {number} ago seconds
 */
export function press(pitch, velocity, ago) {
  if (!isPlaying) return;
  if (draft) server.stop();
  draft = null;
  late = 0;
  if (!recorder.isOn) player.isPlaying ? interrupt() : listen(sound.now - ago);
  recorder.press(pitch, velocity, ago);
}

/**
 * @param {number} pitch
 * @param {number} ago seconds
 */
export function release(pitch, ago) {
  if (!isPlaying) return;
  recorder.release(pitch, ago);
  released = sound.now - ago;
}

/**
 * Listens from the first note on: it is on a beat, the first of a bar.
 * @param {number} begin by the audio clock
 */
function listen(begin) {
  const piece = startedPiece();
  const end = lastEnd(piece);
  const at = barStarts(piece).find((start) => start >= end) ?? end;
  isFree = !piece.notes.length && !settings.get().tempo && piece.grid === "beats";
  recorder.listen({ piece, clock: clockOf(piece), at, begin });
  player.play(at, begin);
  say("Listening. Pause, and the model answers.");
}

/** One plays again: of the answer stays what was heard, and time goes on. */
function interrupt() {
  const { begun } = player;
  const piece = current() ?? freshPiece();
  const clock = clockOf(piece);
  const now = clock.step(sound.now - begun);
  if (page.writing) server.stop();
  page.writing = null;
  const begins = until(piece, now);
  change(begins, "duet");
  recorder.listen({ piece: begins, clock, at: 0, begin: begun });
  player.play(now, sound.now);
  say("Listening.");
}

/**
 * @param {Note} note
 * @param {number} step at which it ends
 * @returns {Note}
 */
const cut = ([onset, duration, ...rest], step) => [
  onset,
  Math.max(1, Math.min(duration, Math.floor(step - onset))),
  ...rest,
];

/**
 * A piece with as much of its answers as was heard until a step.
 * @param {Piece} piece
 * @param {number} now
 */
function until(piece, now) {
  const heard = piece.notes.filter((note) => note[5] || note[0] < now);
  return withNotes(
    piece,
    heard.map((note) => (note[5] ? note : cut(note, now))),
  );
}

/** What there is without what was still to be heard of an answer; null where all of it was. */
function heardPart() {
  const piece = current();
  const now = piece ? clockOf(piece).step(sound.now - player.begun) : 0;
  const isAnswering = hasAnswered && !recorder.isOn;
  if (!piece || page.writing || !isAnswering || now >= lastEnd(piece)) return null;
  const heard = until(piece, now);
  return excerpt(heard, [0, where(heard, lastEnd(heard) - 1).bar + 1]);
}

/**
 * In the tempo in which it lies best on beats.
 * @param {Recording} recording
 */
function felt(recording) {
  const { tempi = [SLOW, QUICK], tempo = 0 } = page.plays ?? {};
  const hasAny = tempi[0] === tempi[1];
  const slowest = hasAny ? SLOW : Math.max(SLOW, tempi[0]);
  const fastest = hasAny ? QUICK : Math.max(slowest, Math.min(QUICK, tempi[1]));
  const onsets = recording.notes.map(([began]) => recording.clock.seconds(began));
  return retimed(recording, tempoOf(onsets, [slowest, fastest], tempo));
}

/** Asks for an answer to what was played, on the beat after the pause. */
function ask() {
  if (isFree && recorder.recording) recorder.recording = felt(recorder.recording);
  const { recording } = recorder;
  if (!recording) return;
  const piece = withPlayed(recording);
  const least = sound.now + READY * 2 ** late;
  const opens = answerStep(
    piece,
    lastEnd(piece),
    field("pause").value,
    (step) => timeOf(recording, step) > least,
  );
  /** @type {Draft} */
  const mine = { ask: asked(piece, { opens }), told: [], hear: null };
  draft = mine;
  server.ask("write", mine.ask, (told) => {
    if (told.error) hear(mine.ask)(told);
    else if (mine.hear) mine.hear(told);
    else mine.told.push(told);
  });
}

/**
 * A request to go on in the meter and the tempo of a piece.
 * @param {Piece} piece
 * @param {Partial<Ask>} more
 */
function asked(piece, more = {}) {
  const variations = page.plays?.rests ? VARIATIONS : 1; // one of them begins on the beat
  const ask = request("continue", { piece, variations, random_seed: newSeed(), ...more });
  if (piece.grid === "seconds") return ask;
  const [numerator, denominator] = piece.bars[piece.bars.length - 1];
  const meter = /** @type {[number, number]} */ ([numerator, denominator]);
  const tempo = piece.tempo[piece.tempo.length - 1][0];
  return { ...ask, settings: { ...ask.settings, meter, tempo } };
}

/**
 * Hears what an answer tells; a duet in which something cannot be is over.
 * @param {Ask} ask
 * @param {(writing: Writing) => void} onBegin
 */
function hear(ask, onBegin = () => {}) {
  const hear = hearer(ask, onBegin);
  return (/** @type {Told} */ told) => {
    if (told.error) stop();
    hear(told);
    if (told.done) say("The model answers. Play, and it listens.");
  };
}

/**
 * Plays an answer on its beat: of its variations one that begins there. One of which nothing is
 * there yet is asked for again, for a later beat.
 * @param {Draft} mine
 * @param {Recording} recording
 */
function answer(mine, recording) {
  draft = null;
  const notes = mine.told.flatMap((told) => told.notes ?? []);
  /** @type {Map<number, number>} the first step of each variation that has come further */
  const firsts = new Map();
  for (const [row, onset] of notes) {
    const first = notes.find((note) => note[0] === row)?.[1] ?? onset;
    if (onset > first) firsts.set(row, first);
  }
  if (!firsts.size) return void (late += 1);
  const [[row]] = [...firsts].sort(([, onset], [, other]) => onset - other);
  const { opens = 0 } = mine.ask;
  const at = timeOf(recording, opens);
  isFree = false;
  hasAnswered = true;
  recorder.end();
  change(mine.ask.piece, "duet");
  mine.hear = hear(mine.ask, (writing) => {
    writing.row = row;
    writing.pulse = pulseOf(mine.ask.piece, opens);
    player.play(opens, at);
  });
  mine.told.forEach(mine.hear);
}

/** @param {Piece} piece an answer, which goes on before it ends */
function goOn(piece) {
  goneOn = piece;
  const ask = asked(piece);
  const pulse = pulseOf(piece, lastEnd(piece));
  server.ask(
    "write",
    ask,
    hear(ask, (writing) => Object.assign(writing, { pulse })),
  );
}

/**
 * Seconds of a beat.
 * @param {Piece} piece
 * @param {number} step
 */
function pulseOf(piece, step) {
  const clock = clockOf(piece);
  return clock.seconds(step + barOf(piece, piece.bars.length - 1).beat) - clock.seconds(step);
}

/** Looks whether it is time for something. */
function tick() {
  const { recording } = recorder;
  if (isPlaying && recording) {
    const isPausing = recording.notes.length > 0 && !recording.open.size;
    if (draft?.ask.opens && sound.now > timeOf(recording, draft.ask.opens) - LEAD)
      answer(draft, recording);
    else if (!draft && isPausing && sound.now > released + WAIT) ask();
  } else if (isPlaying && player.isPlaying && !page.writing) {
    const piece = current();
    const end = piece && clockOf(piece).seconds(lastEnd(piece));
    if (piece && piece !== goneOn && (end ?? 0) < player.position + GO_ON) goOn(piece);
  }
}

function start() {
  isPlaying = true;
  hasAnswered = false;
  show();
  sound.wake();
  say("Play: your first note is the first beat. Pause, and the model answers.");
}

function stop() {
  if (!isPlaying) return;
  isPlaying = false;
  if (draft) server.stop();
  draft = null;
  const { recording } = recorder;
  const piece = recording?.notes.length ? withPlayed(recording) : heardPart();
  recorder.end();
  if (piece) change(piece, "duet");
  player.stop();
  show();
  redraw();
}

export function toggleDuet() {
  if (!page.plays) return;
  const was = isPlaying;
  tell("settle");
  if (!was) return start();
  page.cursor = 0;
  say("The duet is over. It is yours to edit, or to play.");
}

function show() {
  byId("duet").textContent = isPlaying ? "End the duet" : "Begin a duet";
  turn("duet", isPlaying);
}

setInterval(tick, 20);
on("settle", stop);
byId("duet").addEventListener("click", toggleDuet);
