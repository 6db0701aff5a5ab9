// Playing in time: a bar of clicks, then what is pressed is put on the grid.
export class Recorder {
  constructor(sound, onNotes) {
    Object.assign(this, { sound, onNotes, isOn: false });
  }

  // Begins at a step of the piece, at a tempo; the grid is `steps` a quarter note. `onCounted` when the count is over.
  start({ tempo, beats, steps, at }, onCounted) {
    this.sound.wake();
    Object.assign(this, {
      isOn: true,
      steps,
      at,
      beatSeconds: 60 / tempo,
      notes: [],
      open: new Map(),
    });
    this.begin = this.sound.context.currentTime + 0.1 + beats * this.beatSeconds;
    this.nextClick = -beats;
    this.timer = setInterval(() => {
      if (onCounted && this.sound.context.currentTime >= this.begin) {
        onCounted();
        onCounted = null;
      }
      while (
        this.begin + this.nextClick * this.beatSeconds <
        this.sound.context.currentTime + 0.3
      ) {
        this.sound.click(
          this.begin + this.nextClick * this.beatSeconds,
          this.nextClick % beats === 0,
        );
        this.nextClick += 1;
      }
    }, 50);
  }

  press(pitch) {
    if (this.isOn) this.open.set(pitch, this.sound.context.currentTime);
  }

  release(pitch) {
    const began = this.open?.get(pitch);
    if (!this.isOn || began === undefined) return;
    this.open.delete(pitch);
    this.notes.push([this.quantized(began), this.quantized(this.sound.context.currentTime), pitch]);
  }

  // The nearest sixteenth.
  quantized(time) {
    const sixteenth = this.steps / 4;
    return Math.round(((time - this.begin) / this.beatSeconds) * 4) * sixteenth;
  }

  stop() {
    clearInterval(this.timer);
    for (const pitch of [...(this.open?.keys() ?? [])]) this.release(pitch);
    this.isOn = false;
    const sixteenth = Math.round(this.steps / 4);
    const inTime = this.notes.filter(([onset]) => onset > -this.steps); // a beat early at most
    this.onNotes(
      inTime.map(([onset, end, pitch]) => {
        const from = Math.max(0, onset);
        return [Math.round(this.at + from), Math.max(sixteenth, Math.round(end - from)), pitch];
      }),
    );
  }
}
