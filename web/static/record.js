// Playing in time: a bar of clicks, then what is pressed is put on the grid of the piece.
import { barOf, barStarts, beatsFrom, clockOf } from "./piece.js";

/**
 * @import { Clock, Piece } from "./piece.js"
 * @import { Sound } from "./sound.js"
 *
 * `velocity` is how loud a key was struck, 0 where nothing tells.
 * @typedef {[onset: number, duration: number, pitch: number, velocity: number]} Played
 * @typedef {{ piece: Piece, clock: Clock, at: number, begin: number,
 *   notes: [began: number, ended: number, pitch: number, velocity: number][],
 *   open: Map<number, [began: number, velocity: number]> }} Recording
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
    const { beat, beats } = barOf(piece, Math.max(1, bar));
    const count = beats.length * beat + barOf(piece, bar).missing; // before an upbeat, too
    const perStep = (clock.seconds(at + beat) - clock.seconds(at)) / beat;
    const begin = this.sound.now + 0.1 + count * perStep;
    const recording = { piece, clock, at, begin, notes: [], open: new Map() };
    this.recording = recording;
    for (let number = 0; number * beat < count; number++) {
      this.sound.click(begin - (count - number * beat) * perStep, number % beats.length === 0);
    }
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
   * Takes down what is pressed from now on, without a count.
   * @param {Omit<Recording, "notes" | "open">} from
   */
  listen(from) {
    this.recording = { ...from, notes: [], open: new Map() };
    return this.recording;
  }

  /**
   * The step that it is now, or was some seconds ago; before the first while it is counted in.
   * @param {Recording} recording
   */
  stepOf({ clock, at, begin }, ago = 0) {
    return clock.step(clock.seconds(at) + this.sound.now - ago - begin);
  }

  /**
   * @param {number} pitch
   * @param {number} velocity
   * @param {number} ago
   */
  press(pitch, velocity, ago) {
    const { recording } = this;
    recording?.open.set(pitch, [this.stepOf(recording, ago), velocity]);
  }

  /**
   * @param {number} pitch
   * @param {number} ago
   */
  release(pitch, ago) {
    const held = this.recording?.open.get(pitch);
    if (!this.recording || !held) return;
    this.recording.notes.push([held[0], this.stepOf(this.recording, ago), pitch, held[1]]);
    this.recording.open.delete(pitch);
  }

  /**
   * What was played until now, on the grid, what is held included.
   * @param {Recording} recording
   */
  played(recording) {
    return onGrid(recording, this.stepOf(recording));
  }

  /** Ends it, and gives what was played. */
  end() {
    clearInterval(this.timer);
    this.timer = 0;
    const notes = this.recording ? this.played(this.recording) : [];
    this.recording = null;
    return notes;
  }

  stop() {
    const { recording } = this;
    if (!recording) return;
    this.sound.silence();
    this.onNotes(this.end(), recording);
  }
}

/**
 * The time of the audio clock at which a step comes.
 * @param {Recording} recording
 * @param {number} step
 */
export const timeOf = ({ clock, at, begin }, step) =>
  begin + clock.seconds(step) - clock.seconds(at);

/**
 * The same notes, at the same times, in another tempo.
 * @param {Recording} recording
 * @param {number} tempo
 * @returns {Recording}
 */
export function retimed(recording, tempo) {
  const piece = { ...recording.piece, tempo: [...recording.piece.tempo] };
  piece.tempo.fill([tempo]);
  const clock = clockOf(piece);
  /** @param {number} step */
  const moved = (step) => clock.step(recording.clock.seconds(step));
  const at = moved(recording.at);
  return {
    ...{ piece, clock, at, begin: recording.begin },
    notes: recording.notes.map(([began, ended, ...key]) => [moved(began), moved(ended), ...key]),
    open: new Map(
      [...recording.open].map(([pitch, [began, velocity]]) => [pitch, [moved(began), velocity]]),
    ),
  };
}

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
  const held = [...open].map(([pitch, [began, velocity]]) => [began, now, pitch, velocity]);
  return [...notes, ...held]
    .map(([began, ended, ...key]) => [quantized(began), quantized(ended), ...key])
    .filter(([began]) => began > -piece.steps) // a beat early at most
    .map(([began, ended, pitch, velocity]) => {
      const from = Math.max(0, began);
      return [Math.round(at + from), Math.round(Math.max(unit, ended - from)), pitch, velocity];
    });
}
