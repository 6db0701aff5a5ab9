// Sound: notes of the server's sound font, played faster or slower for the pitches between them,
// and a player that goes through a piece, also while it is still being written.

const APART = 6; // semitones between samples
const AHEAD = 0.18; // seconds that notes are handed to the audio clock in advance
const RELEASE = 0.14;

export class Sound {
  constructor() {
    this.context = new AudioContext({ latencyHint: "interactive" });
    this.samples = new Map(); // "program/pitch" -> AudioBuffer, or the promise of one
    this.midi = new Map(); // General MIDI's program of each part that has a name
    this.playing = new Set();
    this.master = this.context.createGain();
    this.master.gain.value = 0.5;
    this.analyser = this.context.createAnalyser();
    this.analyser.fftSize = 2048;
    const limiter = this.context.createDynamicsCompressor();
    this.master.connect(limiter).connect(this.analyser).connect(this.context.destination);
  }

  wake() {
    if (this.context.state !== "running") this.context.resume();
  }

  // The loudest sample of the last moment, 0 to 1.
  level() {
    const wave = new Float32Array(this.analyser.fftSize);
    this.analyser.getFloatTimeDomainData(wave);
    return wave.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  }

  load(program, pitch) {
    const from = program === 128 ? pitch : pitch - (pitch % APART),
      key = `${program}/${from}`;
    if (!this.samples.has(key)) {
      const got = fetch(`/sound/${key}`)
        .then((r) => {
          if (!r.ok) throw new Error(r.status);
          return r.arrayBuffer();
        })
        .then((bytes) => this.context.decodeAudioData(bytes))
        .then((buffer) => {
          this.samples.set(key, buffer);
          return buffer;
        })
        .catch(() => {
          this.samples.delete(key);
          return null;
        });
      this.samples.set(key, got);
    }
    return this.samples.get(key);
  }

  // Loads what a model's instruments need, the middle of their range first.
  async prepare(programs, [low, high]) {
    const pitches = [];
    for (let pitch = low - (low % APART); pitch <= high; pitch += APART) pitches.push(pitch);
    pitches.sort((a, b) => Math.abs(a - 63) - Math.abs(b - 63));
    const sounds = [...new Set(programs.map((p) => this.midi.get(p) ?? p))]
      .filter((p) => p !== 128)
      .slice(0, 16);
    for (const pitch of pitches) await Promise.all(sounds.map((p) => this.load(p, pitch)));
  }

  nearest(part, pitch) {
    const program = this.midi.get(part) ?? part;
    const wanted = this.load(program, pitch);
    if (wanted instanceof AudioBuffer)
      return [wanted, program === 128 ? pitch : pitch - (pitch % APART)];
    let best = null;
    for (const [key, buffer] of this.samples) {
      const [its, from] = key.split("/").map(Number);
      if (
        its === program &&
        program !== 128 &&
        buffer instanceof AudioBuffer &&
        (!best || Math.abs(from - pitch) < Math.abs(best[1] - pitch))
      )
        best = [buffer, from];
    }
    return best;
  }

  // Plays a note at a time of the audio clock; without a duration until the function it returns is called.
  note(program, pitch, velocity = 80, at = this.context.currentTime, seconds = null) {
    const sample = this.nearest(program, pitch);
    if (!sample) return () => {};
    const source = this.context.createBufferSource(),
      gain = this.context.createGain();
    source.buffer = sample[0];
    source.playbackRate.value = 2 ** ((pitch - sample[1]) / 12);
    gain.gain.value = 0.55 * (velocity / 127) ** 1.3;
    source.connect(gain).connect(this.master);
    const begin = Math.max(at, this.context.currentTime);
    source.start(begin);
    this.playing.add(source);
    source.onended = () => {
      this.playing.delete(source);
      gain.disconnect();
    };
    const end = (when) => {
      gain.gain.setTargetAtTime(0, when, RELEASE / 3);
      source.stop(when + RELEASE * 2);
    };
    if (seconds != null) end(begin + seconds);
    return () => end(this.context.currentTime);
  }

  click(at, isFirst) {
    const tone = this.context.createOscillator(),
      gain = this.context.createGain();
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
    for (const source of this.playing) {
      try {
        source.stop();
      } catch {
        /* it had not begun */
      }
    }
    this.playing.clear();
  }
}

export class Player {
  // `ask()` gives { piece, clock, frontier }: what there is; notes before the frontier are complete.
  constructor(sound, ask, onStep) {
    Object.assign(this, {
      sound,
      ask,
      onStep,
      timer: null,
      position: 0,
      begun: 0,
      played: new Set(),
    });
  }
  get isPlaying() {
    return this.timer !== null;
  }

  // Plays from a step on, which sounds at a time of the audio clock: now, where none is given.
  play(fromStep, at = this.sound.context.currentTime + 0.03) {
    if (this.isPlaying) this.stop();
    this.sound.wake();
    const { clock } = this.ask();
    this.position = clock.seconds(fromStep);
    this.begun = at - this.position;
    this.from = fromStep;
    this.played = new Set();
    this.timer = setInterval(() => this.tick(), 20);
    this.tick();
  }

  tick() {
    const now = this.sound.context.currentTime,
      { piece, clock, frontier, isComplete } = this.ask();
    const limit = isComplete ? Infinity : clock.seconds(frontier);
    if (now - this.begun > limit)
      this.begun = now - Math.max(this.position, Math.min(limit, now - this.begun)); // wait for notes
    this.position = now - this.begun;
    let end = 0;
    for (const note of piece.notes) {
      const start = clock.seconds(note[0]),
        stop = clock.seconds(note[0] + note[1]);
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
    const was = this.timer !== null;
    this.timer = null;
    if (!isEnd) this.sound.silence();
    if (was) this.onStep(null);
  }
}
