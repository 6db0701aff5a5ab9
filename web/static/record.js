// Playing in time: a bar of clicks, then what is pressed is put on the grid of the piece.
import { barOf, barStarts, beatsFrom } from "./piece.js";

const AHEAD = 0.3; // seconds that clicks are handed to the audio clock in advance

export class Recorder {
  constructor(sound, onNotes) {
    Object.assign(this, { sound, onNotes, isOn: false });
  }

  // Begins with a bar of a piece, by its clock; `onCounted` when the count is over.
  // Gives the time of the audio clock at which that bar begins.
  start({ piece, clock, bar }, onCounted) {
    this.sound.wake();
    const at = barStarts(piece)[bar],
      { beat, beats } = barOf(piece, Math.max(1, bar)); // an upbeat is counted in by a whole bar
    const perBeat = clock.seconds(at + beat) - clock.seconds(at);
    const begin = this.sound.context.currentTime + 0.1 + beats.length * perBeat;
    Object.assign(this, { isOn: true, piece, clock, at, begin, notes: [], open: new Map() });
    beats.forEach((_, number) => {
      this.sound.click(begin - (beats.length - number) * perBeat, number === 0);
    });
    const coming = beatsFrom(piece, bar);
    let click = coming.next().value;
    this.timer = setInterval(() => {
      if (onCounted && this.sound.context.currentTime >= begin) {
        onCounted();
        onCounted = null;
      }
      while (this.timeOf(click.step) < this.sound.context.currentTime + AHEAD) {
        this.sound.click(this.timeOf(click.step), click.isFirst);
        click = coming.next().value;
      }
    }, 50);
    return begin;
  }

  timeOf(step) {
    return this.begin + this.clock.seconds(step) - this.clock.seconds(this.at);
  }

  // The step that it is now; before the first while it is counted in.
  get step() {
    return this.clock.step(
      this.clock.seconds(this.at) + this.sound.context.currentTime - this.begin,
    );
  }

  press(pitch) {
    if (this.isOn) this.open.set(pitch, this.step);
  }

  release(pitch) {
    if (!this.isOn || !this.open.has(pitch)) return;
    this.notes.push([this.open.get(pitch), this.step, pitch]);
    this.open.delete(pitch);
  }

  // What was played until now, on the grid, what is held included: [onset, duration, pitch].
  played() {
    const held = [...this.open].map(([pitch, began]) => [began, this.step, pitch]);
    // the nearest sixteenth; where there is no beat, as it was played
    const unit = this.piece.grid === "seconds" ? 1 : this.piece.steps / 4;
    const quantized = (step) => Math.round((step - this.at) / unit) * unit;
    return [...this.notes, ...held]
      .map(([began, ended, pitch]) => [quantized(began), quantized(ended), pitch])
      .filter(([began]) => began > -this.piece.steps) // a beat early at most
      .map(([began, ended, pitch]) => {
        const from = Math.max(0, began);
        return [Math.round(this.at + from), Math.round(Math.max(unit, ended - from)), pitch];
      });
  }

  stop() {
    clearInterval(this.timer);
    this.sound.silence();
    const notes = this.played();
    this.isOn = false;
    this.onNotes(notes);
  }
}
