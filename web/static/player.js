// Plays a piece by the audio clock, also while it is still being written.

/**
 * @import { Clock, Piece } from "./piece.js"
 * @import { Sound } from "./sound.js"
 *
 * What there is to play. Notes before the frontier are complete.
 * @typedef {{ piece: Piece, clock: Clock, isComplete: boolean, frontier: number }} Heard
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
    this.played = new Set();
    this.timer = setInterval(() => this.tick(), 20);
    this.tick();
  }

  tick() {
    const { now } = this.sound;
    const { piece, clock, frontier, isComplete } = this.ask();
    const limit = isComplete ? Infinity : clock.seconds(frontier);
    if (now - this.begun > limit)
      this.begun = now - Math.max(this.position, Math.min(limit, now - this.begun)); // wait for notes
    this.position = now - this.begun;
    let end = 0;
    for (const note of piece.notes) {
      const start = clock.seconds(note[0]);
      const stop = clock.seconds(note[0] + note[1]);
      end = Math.max(end, stop);
      const isReady = isComplete || note[0] < frontier;
      if (note[0] < this.from || !isReady || this.played.has(note) || start > this.position + AHEAD)
        continue;
      this.played.add(note);
      if (stop > this.position)
        this.sound.note(note[4], note[2], note[3], this.begun + start, stop - start);
    }
    this.onStep(Math.max(0, clock.step(Math.max(0, this.position))));
    if (isComplete && this.position > end + 0.2) this.stop(true);
  }

  stop(isEnd = false) {
    clearInterval(this.timer);
    const was = this.isPlaying;
    this.timer = 0;
    if (!isEnd) this.sound.silence();
    if (was) this.onStep(null);
  }
}
