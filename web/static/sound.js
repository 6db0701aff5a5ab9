// Sound: notes of the server's sound font, played faster or slower for the pitches between them.
import { DRUMS, generalOf } from "./piece.js";

const APART = 6; // semitones between samples
const RELEASE = 0.14;
const FIRST = 8; // samples, of 130 kB each, before the first sound
const MOST = 80; // others come when they are played
const WIDTH = 0.8; // of 2, from the left to the right
const ROOM = 0.25;

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
    /** @type {Map<number, StereoPannerNode>} where each part sits */
    this.seats = new Map();
    const heard = new GainNode(this.context, { gain: ROOM });
    this.master.connect(this.room()).connect(heard).connect(limiter);
  }

  get now() {
    return this.context.currentTime;
  }

  /** @param {number} part */
  general(part) {
    return this.midi.get(part) ?? generalOf(part);
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
   * Loads what instruments need in the ranges that they play in: first few samples of each, an
   * octave apart; when those are there, the others follow.
   * @param {[part: number, program: number, range: [low: number, high: number]][]} instruments
   */
  async prepare(instruments) {
    /** @type {Map<string, [program: number, pitch: number, turn: number]>} */
    const samples = new Map();
    for (const [part, program, [low, high]] of instruments) {
      this.seat(part, instruments);
      if (program === DRUMS) continue;
      const middle = (low + high) / 2;
      let turn = 0;
      for (let pitch = low - (low % APART); pitch <= high; pitch += APART) {
        const isBetween = turn++ % 2 === 0;
        const away = Math.abs(pitch - middle);
        samples.set(`${program}/${pitch}`, [program, pitch, away + (isBetween ? 128 : 0)]);
      }
    }
    const all = [...samples.values()].sort(([, , turn], [, , other]) => turn - other);
    /** @param {[program: number, pitch: number, turn: number][]} some */
    const load = (some) => Promise.all(some.map(([program, pitch]) => this.load(program, pitch)));
    await load(all.slice(0, FIRST));
    load(all.slice(FIRST, MOST));
  }

  /**
   * Gives a part its place from left to right.
   * @param {number} part
   * @param {[part: number, ...unknown[]][]} instruments
   */
  seat(part, instruments) {
    const seat = this.context.createStereoPanner();
    const place = instruments.findIndex(([each]) => each === part);
    seat.pan.value = WIDTH * (place / Math.max(1, instruments.length - 1) - 0.5);
    seat.connect(this.master);
    this.seats.get(part)?.disconnect();
    this.seats.set(part, seat);
  }

  /** A small room: what comes back of a sound, fading, other on the left than on the right. */
  room() {
    const rate = this.context.sampleRate;
    const buffer = this.context.createBuffer(2, Math.round(0.9 * rate), rate);
    for (const channel of [0, 1]) {
      const samples = buffer.getChannelData(channel);
      for (let at = 0; at < samples.length; at++)
        samples[at] = (2 * Math.random() - 1) * Math.exp((-6 * at) / rate);
    }
    return new ConvolverNode(this.context, { buffer });
  }

  /**
   * The sample to play a pitch with, and its own pitch: the one next to it while that is loaded.
   * @param {number} part
   * @param {number} pitch
   * @returns {[buffer: AudioBuffer, pitch: number] | null}
   */
  nearest(part, pitch) {
    const program = this.general(part);
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
    source.connect(gain).connect(this.seats.get(program) ?? this.master);
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
