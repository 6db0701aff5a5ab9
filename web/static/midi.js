// A MIDI port in the place of the page's own sound: a synthesizer, or a DAW.
import { DRUMS } from "./piece.js";

const DRUM_CHANNEL = 9;
const CHANNELS = [...Array(16).keys()].filter((channel) => channel !== DRUM_CHANNEL);
const [OFF, ON, PROGRAM] = [0x80, 0x90, 0xc0];

export class MidiOut {
  /**
   * @param {{ send: (data: number[], at?: number) => void, clear?: () => void }} port
   * @param {(program: number) => number} general the program of General MIDI for one of the model
   */
  constructor(port, general) {
    this.port = port;
    this.general = general;
    /** @type {Map<number, number>} */
    this.channels = new Map();
    /** @type {Set<{ channel: number, pitch: number, on: number, off: number }>} in milliseconds */
    this.handed = new Set();
  }

  /** @param {number} program */
  channel(program) {
    const general = this.general(program);
    if (general === DRUMS) return DRUM_CHANNEL;
    const known = this.channels.get(program);
    if (known !== undefined) return known;
    const channel = CHANNELS[this.channels.size % CHANNELS.length];
    this.channels.set(program, channel);
    this.port.send([PROGRAM | channel, general]);
    return channel;
  }

  /**
   * Hands over a note that begins at a time; without a duration until the function that it gives
   * is called.
   * @param {number} program
   * @param {number} pitch
   * @param {number} velocity
   * @param {number} on milliseconds, as performance.now() counts them
   * @param {number | null} seconds
   */
  note(program, pitch, velocity, on, seconds) {
    const channel = this.channel(program);
    const off = seconds === null ? Infinity : on + seconds * 1000;
    for (const note of this.handed) if (note.off < performance.now()) this.handed.delete(note);
    const note = { channel, pitch, on, off };
    this.handed.add(note);
    this.port.send([ON | channel, pitch, velocity], on);
    if (seconds !== null) this.port.send([OFF | channel, pitch, 0], off);
    return () => this.end(note);
  }

  /** @param {{ channel: number, pitch: number, on: number, off: number }} note */
  end(note) {
    if (!this.handed.delete(note) || note.off < performance.now()) return;
    this.port.send([OFF | note.channel, note.pitch, 0], Math.max(note.on + 1, performance.now()));
  }

  silence() {
    this.port.clear?.(); // what was handed over, where the browser can
    for (const note of [...this.handed]) this.end(note);
  }
}
