// Playing what there is, from the cursor on.
import { byId, field, isOn, setText, turn } from "./dom.js";
import { change, current, freshPiece, on, page, session, settings, sound, tell } from "./page.js";
import { FASTEST, SLOWEST, barStarts, beatsOf, clockOf, lastEnd } from "./piece.js";
import { Player } from "./player.js";
import { redraw, roll, selectedSteps } from "./stage.js";

/**
 * @import { Clock, Piece } from "./piece.js"
 * @import { Beat, Heard } from "./player.js"
 * @import { Ask } from "./session.js"
 */

/** @type {{ piece: Piece, clock: Clock, beats: Beat[] } | null} of the piece that was played last */
let latest = null;
let at = 0; // the step that sounds, or did last
/** @type {(() => Heard | null) | null} what is played instead, while one records */
let instead = null;

export const player = new Player(sound, heard, onStep);

/** @param {(() => Heard | null) | null} ask */
export const playInstead = (ask) => (instead = ask);

/**
 * What is played: what there is; while one records, without the notes that are played to it.
 * @returns {Heard}
 */
export function heard() {
  const other = instead?.();
  if (other) return other;
  const piece = current() ?? freshPiece();
  const { writing } = page;
  if (latest?.piece !== piece) latest = { piece, clock: clockOf(piece), beats: beatsOf(piece) };
  const frontier = writing?.rows[writing.row].at(-1)?.[0] ?? writing?.opens ?? 0;
  return {
    ...latest,
    ...{ isComplete: !writing, frontier, pulse: writing?.pulse, silent: roll.silent },
    beats: isOn("metronome") ? latest.beats : [],
    loop: writing ? null : looped(piece),
  };
}

/**
 * The steps that are played again and again: of the bars that are selected, or of all with notes.
 * @param {Piece} piece
 * @returns {[first: number, end: number] | null}
 */
function looped(piece) {
  if (!isOn("loop") || !piece.notes.length) return null;
  const end = lastEnd(piece);
  const bar = barStarts(piece).find((start) => start >= end);
  return selectedSteps() ?? [0, bar ?? end];
}

/** @param {number | null} step */
function onStep(step) {
  const label = player.isPlaying ? "Pause" : "Play";
  byId("play").classList.toggle("on", player.isPlaying);
  if (byId("play").getAttribute("aria-label") !== label)
    byId("play").setAttribute("aria-label", label);
  if (step !== null) showAt(step);
  else if (roll.piece) roll.moveTo(page.cursor || null);
}

/** @param {number} step */
export function showAt(step) {
  if (!roll.piece) return;
  showTime(step);
  at = step;
  roll.moveTo(step);
}

/** @param {number} step */
function showTime(step) {
  const time = Math.floor(heard().clock.seconds(step));
  setText(byId("clock"), `${Math.floor(time / 60)}:${String(time % 60).padStart(2, "0")}`);
}

/**
 * Moves the cursor; what is played goes on from there.
 * @param {number} step
 */
export function goTo(step) {
  page.cursor = Math.floor(step);
  if (player.isPlaying) player.play(page.cursor);
  else showAt(page.cursor);
}

export function togglePlay() {
  if (player.isPlaying) {
    page.cursor = Math.floor(at);
    player.stop();
    return;
  }
  const piece = current();
  if (!piece?.notes.length) return;
  const [first, end] = looped(piece) ?? [0, lastEnd(piece)];
  const isWithin = page.cursor < end && (page.cursor >= first || !isOn("loop"));
  player.play(isWithin ? page.cursor : first);
}

/**
 * @param {number | null} tempo
 * @returns {tempo is number}
 */
const isTempo = (tempo) => tempo !== null && tempo >= SLOWEST && tempo <= FASTEST;

/** Plays what there is, and what is written now or from now on, at the tempo that was chosen. */
function retime() {
  const { tempo } = settings.get();
  const piece = current();
  const { writing, isAsked } = page;
  const isThere = writing || (piece?.notes.length && !isAsked); // what is asked for, when it begins
  if (!piece || !isThere || instead?.() || page.plays?.grid === "seconds") return;
  if (!isTempo(tempo)) return; // it is said beside the control
  if (piece.tempo.every(([bpm]) => bpm === Math.round(tempo))) return;
  /** @type {(piece: Piece) => Piece} */
  const retimed = (piece) => ({ ...piece, tempo: piece.tempo.map(() => [Math.round(tempo)]) });
  /** @type {(ask: Ask) => Ask} */
  const asked = (ask) => ({
    ...ask,
    piece: retimed(ask.piece),
    settings: { ...ask.settings, tempo },
    ...(ask.written ? { written: asked(ask.written) } : {}),
  });
  const playing = player.isPlaying ? Math.floor(at) : null;
  if (writing) {
    const { base, ask } = writing;
    Object.assign(writing, { base: retimed(base), ask: asked(ask), shown: undefined });
    tell("show");
  } else if (session.now) {
    const { before, chosen, written } = session.now;
    const variations = session.now.variations?.map(retimed) ?? null;
    change(variations?.[chosen] ?? retimed(piece), "tempo", {
      ...{ before, chosen, variations },
      written: written && asked(written),
    });
  }
  if (playing !== null) player.play(playing);
}

/** @param {number} volume 0 to 1 */
function setVolume(volume) {
  sound.master.gain.setTargetAtTime(volume ** 2, sound.now, 0.02);
}

on("tempo", retime);
on("settle", () => player.stop());
on("show", () => {
  if (!player.isPlaying) {
    roll.cursor = page.cursor || null;
    showTime(page.cursor);
  }
  const piece = current();
  field("s-tempo").placeholder = piece?.notes.length ? String(piece.tempo[0][0]) : "any";
  const { tempo } = settings.get();
  const isOther = piece?.tempo.some(([bpm]) => bpm !== Math.round(tempo ?? bpm));
  if (piece?.notes.length && isOther && isTempo(tempo)) settings.forget("s-tempo");
  redraw();
});
for (const id of ["loop", "metronome"]) byId(id).addEventListener("click", () => turn(id));
field("volume").addEventListener("input", () => setVolume(Number(field("volume").value)));
setVolume(Number(field("volume").value));
field("play").addEventListener("click", togglePlay);
field("to-start").addEventListener("click", () => goTo(0));
