// Playing in time: a bar of clicks, then what is pressed is put on the grid of the piece.
import { barOf, barStarts, beatsFrom } from "./piece.js";

/**
 * @import { Clock, Piece } from "./piece.js"
 * @import { Sound } from "./sound.js"
 *
 * @typedef {[onset: number, duration: number, pitch: number]} Played
 * @typedef {{ piece: Piece, clock: Clock, at: number, begin: number,
 *   notes: [began: number, ended: number, pitch: number][], open: Map<number, number> }} Recording
 */

const AHEAD = 0.3; // seconds that clicks are handed to the audio clock in advance

export class Recorder {
  /**
   * @param {Sound} sound
   * @param {(notes: Played[], recording: Recording) => void} onNotes
   */
  constructor(sound, onNotes) {
    this.sound = sound;
    this.onNotes = onNotes;
    /** @type {Recording | null} */
    this.recording = null;
    this.timer = 0;
  }

  get isOn() {
    return this.recording !== null;
  }

  /**
   * Begins with a bar of a piece, by its clock; `onCounted` when the count is over.
   * @param {{ piece: Piece, clock: Clock, bar: number }} from
   * @param {() => void} onCounted
   */
  start({ piece, clock, bar }, onCounted) {
    this.sound.wake();
    const at = barStarts(piece)[bar];
    const { beat, beats } = barOf(piece, Math.max(1, bar)); // an upbeat is counted in by a whole bar
    const perBeat = clock.seconds(at + beat) - clock.seconds(at);
    const begin = this.sound.now + 0.1 + beats.length * perBeat;
    const recording = { piece, clock, at, begin, notes: [], open: new Map() };
    this.recording = recording;
    beats.forEach((_, number) => {
      this.sound.click(begin - (beats.length - number) * perBeat, number === 0);
    });
    const coming = beatsFrom(piece, bar);
    let click = coming.next().value;
    let isCounted = false;
    this.timer = setInterval(() => {
      if (!isCounted && this.sound.now >= begin) {
        isCounted = true;
        onCounted();
      }
      while (click && timeOf(recording, click.step) < this.sound.now + AHEAD) {
        this.sound.click(timeOf(recording, click.step), click.isFirst);
        click = coming.next().value;
      }
    }, 50);
    return recording;
  }

  /**
   * The step that it is now; before the first while it is counted in.
   * @param {Recording} recording
   */
  stepOf({ clock, at, begin }) {
    return clock.step(clock.seconds(at) + this.sound.now - begin);
  }

  /** @param {number} pitch */
  press(pitch) {
    if (this.recording) this.recording.open.set(pitch, this.stepOf(this.recording));
  }

  /** @param {number} pitch */
  release(pitch) {
    const began = this.recording?.open.get(pitch);
    if (!this.recording || began === undefined) return;
    this.recording.notes.push([began, this.stepOf(this.recording), pitch]);
    this.recording.open.delete(pitch);
  }

  /**
   * What was played until now, on the grid, what is held included.
   * @param {Recording} recording
   */
  played(recording) {
    return onGrid(recording, this.stepOf(recording));
  }

  stop() {
    if (!this.recording) return;
    clearInterval(this.timer);
    this.sound.silence();
    const recording = this.recording;
    const notes = this.played(recording);
    this.recording = null;
    this.onNotes(notes, recording);
  }
}

/**
 * The time of the audio clock at which a step comes.
 * @param {Recording} recording
 * @param {number} step
 */
const timeOf = ({ clock, at, begin }, step) => begin + clock.seconds(step) - clock.seconds(at);

/**
 * What was played until a step, on the nearest sixteenths; where there is no beat, as it was.
 * @param {Recording} recording
 * @param {number} now
 * @returns {Played[]}
 */
export function onGrid({ piece, at, notes, open }, now) {
  const unit = piece.grid === "seconds" ? 1 : piece.steps / 4;
  /** @param {number} step */
  const quantized = (step) => Math.round((step - at) / unit) * unit;
  const held = [...open].map(([pitch, began]) => [began, now, pitch]);
  return [...notes, ...held]
    .map(([began, ended, pitch]) => [quantized(began), quantized(ended), pitch])
    .filter(([began]) => began > -piece.steps) // a beat early at most
    .map(([began, ended, pitch]) => {
      const from = Math.max(0, began);
      return [Math.round(at + from), Math.round(Math.max(unit, ended - from)), pitch];
    });
}
