// Sound: notes of the server's sound font, played faster or slower for the pitches between them.
import { DRUMS } from "./piece.js";

const APART = 6; // semitones between samples
const RELEASE = 0.14;

export class Sound {
  constructor() {
    this.context = new AudioContext({ latencyHint: "interactive" });
    /** @type {Map<string, AudioBuffer | Promise<AudioBuffer | null>>} by "program/pitch" */
    this.samples = new Map();
    /** @type {Map<number, number>} General MIDI's program of each part that has a name */
    this.midi = new Map();
    /** @type {import("./midi.js").MidiOut | null} what sounds instead */
    this.out = null;
    /** @type {Set<AudioScheduledSourceNode>} */
    this.playing = new Set();
    this.master = this.context.createGain();
    this.analyser = this.context.createAnalyser();
    this.analyser.fftSize = 2048;
    const limiter = this.context.createDynamicsCompressor();
    this.master.connect(limiter).connect(this.analyser).connect(this.context.destination);
  }

  get now() {
    return this.context.currentTime;
  }

  wake() {
    if (this.context.state !== "running") this.context.resume();
  }

  /** The loudest sample of the last moment, 0 to 1. */
  level() {
    const wave = new Float32Array(this.analyser.fftSize);
    this.analyser.getFloatTimeDomainData(wave);
    return wave.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  }

  /**
   * @param {number} program
   * @param {number} pitch
   */
  load(program, pitch) {
    const key = `${program}/${program === DRUMS ? pitch : pitch - (pitch % APART)}`;
    const known = this.samples.get(key);
    if (known) return known;
    const coming = this.fetched(key);
    this.samples.set(key, coming);
    return coming;
  }

  /** @param {string} key */
  async fetched(key) {
    try {
      const response = await fetch(`/sound/${key}`);
      if (!response.ok) throw new Error(String(response.status));
      const buffer = await this.context.decodeAudioData(await response.arrayBuffer());
      this.samples.set(key, buffer);
      return buffer;
    } catch {
      this.samples.delete(key);
      return null;
    }
  }

  /**
   * Loads what a model's instruments need, the middle of their range first.
   * @param {number[]} programs
   * @param {[low: number, high: number]} pitches
   */
  async prepare(programs, [low, high]) {
    const pitches = [];
    for (let pitch = low - (low % APART); pitch <= high; pitch += APART) pitches.push(pitch);
    pitches.sort((a, b) => Math.abs(a - 63) - Math.abs(b - 63));
    const sounds = [...new Set(programs.map((p) => this.midi.get(p) ?? p))]
      .filter((p) => p !== DRUMS)
      .slice(0, 16);
    for (const pitch of pitches) await Promise.all(sounds.map((p) => this.load(p, pitch)));
  }

  /**
   * The sample to play a pitch with, and its own pitch: the one next to it while that is loaded.
   * @param {number} part
   * @param {number} pitch
   * @returns {[buffer: AudioBuffer, pitch: number] | null}
   */
  nearest(part, pitch) {
    const program = this.midi.get(part) ?? part;
    const wanted = this.load(program, pitch);
    if (wanted instanceof AudioBuffer)
      return [wanted, program === DRUMS ? pitch : pitch - (pitch % APART)];
    /** @type {[AudioBuffer, number] | null} */
    let best = null;
    if (program === DRUMS) return best;
    for (const [key, buffer] of this.samples) {
      const [ofProgram, from] = key.split("/").map(Number);
      if (ofProgram !== program || !(buffer instanceof AudioBuffer)) continue;
      if (!best || Math.abs(from - pitch) < Math.abs(best[1] - pitch)) best = [buffer, from];
    }
    return best;
  }

  /**
   * Plays a note at a time of the audio clock; without a duration until the function that it
   * gives is called.
   * @param {number} program
   * @param {number} pitch
   * @param {number} velocity
   * @param {number} at
   * @param {number | null} seconds
   */
  note(program, pitch, velocity = 80, at = this.now, seconds = null) {
    if (this.out) {
      const on = performance.now() + Math.max(0, at - this.now) * 1000;
      return this.out.note(program, pitch, velocity, on, seconds);
    }
    const sample = this.nearest(program, pitch);
    if (!sample) return () => {};
    const source = this.context.createBufferSource();
    const gain = this.context.createGain();
    source.buffer = sample[0];
    source.playbackRate.value = 2 ** ((pitch - sample[1]) / 12);
    gain.gain.value = 0.55 * (velocity / 127) ** 1.3;
    source.connect(gain).connect(this.master);
    const begin = Math.max(at, this.now);
    source.start(begin);
    this.playing.add(source);
    source.onended = () => {
      this.playing.delete(source);
      gain.disconnect();
    };
    /** @param {number} when */
    const end = (when) => {
      gain.gain.setTargetAtTime(0, when, RELEASE / 3);
      source.stop(when + RELEASE * 2);
    };
    if (seconds !== null) end(begin + seconds);
    return () => end(this.now);
  }

  /**
   * @param {number} at
   * @param {boolean} isFirst of a bar
   */
  click(at, isFirst) {
    const tone = this.context.createOscillator();
    const gain = this.context.createGain();
    tone.frequency.value = isFirst ? 1600 : 1100;
    gain.gain.setValueAtTime(0.25, at);
    gain.gain.exponentialRampToValueAtTime(0.001, at + 0.05);
    tone.connect(gain).connect(this.master);
    tone.start(at);
    tone.stop(at + 0.06);
    this.playing.add(tone);
    tone.onended = () => this.playing.delete(tone);
  }

  silence() {
    this.out?.silence();
    for (const source of this.playing) {
      try {
        source.stop();
      } catch {
        // it had not begun
      }
    }
    this.playing.clear();
  }
}
