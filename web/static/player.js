// Plays a piece by the audio clock, also while it is still being written.
import { keyOf, lastEnd } from "./piece.js";

/**
 * @import { Clock, Note, Piece } from "./piece.js"
 * @import { Sound } from "./sound.js"
 *
 * @typedef {{ step: number, isFirst: boolean }} Beat
 *
 * What there is to play. Notes before the frontier are complete; `loop` are the steps that are
 * played again and again, `beats` those at which a metronome clicks, `silent` the programs that are
 * not heard. Notes that are not there in time are waited for; by so many seconds or their multiples
 * where there is a `pulse`.
 * @typedef {{ piece: Piece, clock: Clock, isComplete: boolean, frontier: number, pulse?: number,
 *   loop: [first: number, end: number] | null, beats: Beat[], silent: Set<number> }} Heard
 */

const AHEAD = 0.18; // seconds that notes are handed to the audio clock in advance

export class Player {
  /**
   * @param {Sound} sound
   * @param {() => Heard} ask
   * @param {(step: number | null) => void} onStep null: it has stopped
   */
  constructor(sound, ask, onStep) {
    this.sound = sound;
    this.ask = ask;
    this.onStep = onStep;
    this.timer = 0;
    this.position = 0; // seconds of the piece's clock
    this.begun = 0; // the time of the audio clock at which the piece would have begun
    this.from = 0;
    this.played = new Set();
  }

  get isPlaying() {
    return this.timer !== 0;
  }

  /**
   * Plays from a step on, which sounds at a time of the audio clock: now, where none is given.
   * @param {number} fromStep
   */
  play(fromStep, at = this.sound.now + 0.03) {
    if (this.isPlaying) this.stop();
    this.sound.wake();
    this.position = this.ask().clock.seconds(fromStep);
    this.begun = at - this.position;
    this.from = fromStep;
    this.played = new Set(); // keys of notes: what is written anew while it sounds has the same
    this.timer = setInterval(() => this.tick(), 20);
    this.tick();
  }

  tick() {
    const heard = this.ask();
    const { piece, clock, frontier, isComplete, loop, pulse } = heard;
    const { now } = this.sound;
    const limit = isComplete ? Infinity : clock.seconds(frontier);
    if (now - this.begun > limit)
      this.begun = pulse
        ? this.begun + pulse
        : now - Math.max(this.position, Math.min(limit, now - this.begun));
    this.position = now - this.begun;
    this.schedule(heard);
    const shown = loop ? this.turn(heard, loop) : this.position;
    this.onStep(Math.max(0, clock.step(Math.max(0, shown))));
    const last = clock.seconds(lastEnd(piece));
    if (isComplete && !loop && this.position > last + 0.2) this.stop(true);
  }

  /**
   * Hands over what begins soon, up to the end of the loop.
   * @param {Heard} heard
   */
  schedule({ piece, clock, frontier, isComplete, loop, beats, silent }) {
    const end = loop ? clock.seconds(loop[1]) : Infinity;
    const soon = Math.min(this.position + AHEAD, end - 1e-6);
    /** @param {number} step */
    const isDue = (step) =>
      step >= this.from && (isComplete || step < frontier) && clock.seconds(step) <= soon;
    for (const note of piece.notes) {
      if (!isDue(note[0]) || silent.has(note[4]) || this.played.has(keyOf(note))) continue;
      this.played.add(keyOf(note));
      const start = clock.seconds(note[0]);
      const stop = Math.min(clock.seconds(note[0] + note[1]), end);
      if (stop > this.position)
        this.sound.note(note[4], note[2], note[3], this.begun + start, stop - start);
    }
    for (const beat of beats) {
      if (!isDue(beat.step) || this.played.has(beat.step)) continue;
      this.played.add(beat.step);
      const start = clock.seconds(beat.step);
      if (start >= this.position) this.sound.click(this.begun + start, beat.isFirst);
    }
  }

  /**
   * Goes back to the beginning of the loop in time for its first notes; gives what sounds now, in
   * seconds of the piece.
   * @param {Heard} heard
   * @param {[first: number, end: number]} loop
   */
  turn(heard, [first, last]) {
    const [start, end] = [first, last].map(heard.clock.seconds);
    if (this.position + AHEAD >= end) {
      const back = this.position > end ? this.position - start : end - start;
      this.begun += back;
      this.position -= back;
      this.from = first;
      this.played = new Set();
      this.schedule(heard);
    }
    const isOfLapBefore = this.from === first && this.position < start;
    return isOfLapBefore ? this.position + end - start : this.position;
  }

  stop(isEnd = false) {
    clearInterval(this.timer);
    const was = this.isPlaying;
    this.timer = 0;
    if (!isEnd) this.sound.silence();
    if (was) this.onStep(null);
  }
}
