// The piano roll on a canvas: notes, bars, the cursor, what is selected, what was looked at.
import { barOf, barStarts, noteName } from "./piece.js";

const RULER = 22; // pixels, in which bars are numbered and selected
const RULER_OF_FINGERS = 44;
const LEAST_BAR = 84; // pixels of a bar, before the roll scrolls
const MOST_WIDTH = 16000;

const isBlack = (pitch) => [1, 3, 6, 8, 10].includes(pitch % 12);
const palette = new Map(); // colors of the style sheet, read once a drawing: asking costs as much as a note
const color = (name) => {
  if (!palette.has(name))
    palette.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return palette.get(name);
};

// Draws a small picture of a piece into a canvas, as wide as it is shown.
export function drawSmall(canvas, piece, programs) {
  const roll = new Roll(canvas, programs);
  roll.isSmall = true;
  roll.show(piece);
}

export class Roll {
  // `mark` is the element that moves with the music; a small picture has none.
  constructor(canvas, programs = [], mark = null) {
    Object.assign(this, {
      canvas,
      programs,
      mark,
      piece: null,
      cursor: null,
      sounding: [],
      selection: null,
      focus: null,
      looks: null,
    });
  }

  show(piece) {
    this.piece = piece;
    this.draw();
  }

  // Moves the cursor; notes are drawn anew only when others sound.
  moveTo(step) {
    this.cursor = step;
    const sounding =
      step === null
        ? []
        : this.piece.notes.filter((note) => note[0] <= step && step < note[0] + note[1]);
    if (
      sounding.length !== this.sounding.length ||
      sounding.some((note, at) => note !== this.sounding[at])
    )
      this.draw();
    else this.placeMark();
    if (step !== null) this.keepInView(step);
  }

  placeMark() {
    if (!this.mark) return;
    this.mark.hidden = this.cursor === null;
    if (this.cursor !== null)
      this.mark.style.transform = `translateX(${Math.min(this.at.x(this.cursor), this.at.width - 1) - 1}px)`;
  }

  colorOf(note) {
    return note[5]
      ? color("--own")
      : color(`--v${Math.max(0, this.programs.indexOf(note[4])) % 6}`);
  }

  layout() {
    const { canvas, piece, isSmall } = this;
    const frame = isSmall ? canvas : canvas.parentElement;
    const starts = barStarts(piece),
      steps = Math.max(starts.at(-1), 1);
    const shown = frame.clientWidth - (isSmall ? 0 : 2);
    const least = isSmall
      ? 0
      : Math.min(LEAST_BAR * piece.bars.length, MOST_WIDTH / devicePixelRatio);
    const width = Math.max(shown, least),
      height = canvas.clientHeight;
    let low = 127,
      high = 0;
    for (const note of piece.notes) {
      low = Math.min(low, note[2]);
      high = Math.max(high, note[2]);
    }
    if (low > high) [low, high] = [55, 79];
    while (high - low < (isSmall ? 12 : 24)) {
      if (high < 127) high++;
      if (low > 0) low--;
    }
    const ruler = matchMedia("(pointer: coarse)").matches ? RULER_OF_FINGERS : RULER;
    const top = isSmall ? 3 : ruler + 6,
      bottom = isSmall ? 3 : 8;
    const row = (height - top - bottom) / (high - low + 1);
    return {
      starts,
      width,
      height,
      low,
      high,
      row,
      ruler,
      top,
      x: (step) => (step / steps) * width,
      step: (x) => (x / width) * steps,
      y: (pitch) => top + (high - pitch) * row,
    };
  }

  draw() {
    const { canvas, piece } = this;
    if (!piece) return;
    palette.clear();
    const at = (this.at = this.layout()),
      ratio = devicePixelRatio || 1;
    this.sounding = [];
    if (!this.isSmall) canvas.style.width = `${at.width}px`;
    if (
      canvas.width !== Math.round(at.width * ratio) ||
      canvas.height !== Math.round(at.height * ratio)
    ) {
      canvas.width = Math.round(at.width * ratio);
      canvas.height = Math.round(at.height * ratio);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, at.width, at.height);
    if (!this.isSmall) this.drawGround(pen, at);
    for (const note of piece.notes) this.drawNote(pen, at, note);
    if (this.looks) this.drawLooks(pen, at);
    this.placeMark();
  }

  drawGround(pen, at) {
    const { piece, selection } = this;
    pen.fillStyle = color("--black-key");
    for (let pitch = at.low; pitch <= at.high; pitch++)
      if (isBlack(pitch)) pen.fillRect(0, at.y(pitch), at.width, at.row);
    if (selection) {
      pen.fillStyle = color("--select");
      pen.fillRect(
        at.x(at.starts[selection[0]]),
        0,
        at.x(at.starts[selection[1]]) - at.x(at.starts[selection[0]]),
        at.height,
      );
    }
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    piece.bars.forEach((_, index) => {
      const { number, beats } = barOf(piece, index);
      const x = Math.round(at.x(at.starts[index])) + 0.5;
      pen.strokeStyle = color("--line");
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(x, 0);
      pen.lineTo(x, at.height);
      pen.stroke();
      pen.globalAlpha = 0.45;
      pen.beginPath();
      for (const [, step] of beats) {
        if (step === 0) continue;
        const beat = Math.round(at.x(at.starts[index] + step)) + 0.5;
        pen.moveTo(beat, at.ruler);
        pen.lineTo(beat, at.height);
      }
      pen.stroke();
      pen.globalAlpha = 1;
      pen.fillStyle = color("--soft");
      pen.fillText(String(number), x + 5, at.ruler / 2 + 1);
    });
    pen.beginPath();
    pen.strokeStyle = color("--line");
    pen.moveTo(0, at.ruler + 0.5);
    pen.lineTo(at.width, at.ruler + 0.5);
    pen.stroke();
  }

  drawNote(pen, at, note) {
    const x = at.x(note[0]) + 0.5,
      width = Math.max(2, at.x(note[0] + note[1]) - at.x(note[0]) - 1.5);
    const height = Math.max(2.5, Math.min(at.row * 0.92, 15)),
      y = at.y(note[2]) + (at.row - height) / 2;
    const isSounding =
      this.cursor !== null && note[0] <= this.cursor && this.cursor < note[0] + note[1];
    pen.beginPath();
    pen.roundRect(x, y, width, height, Math.min(4, height / 2));
    pen.fillStyle = this.colorOf(note);
    pen.fill();
    if (isSounding) {
      this.sounding.push(note);
      pen.strokeStyle = color("--glow");
      pen.lineWidth = 2.5;
      pen.stroke();
    }
    if (
      this.focus &&
      this.focus[0] === note[0] &&
      this.focus[2] === note[2] &&
      this.focus[4] === note[4]
    ) {
      pen.strokeStyle = color("--glow");
      pen.lineWidth = 3;
      pen.beginPath();
      pen.roundRect(x - 2, y - 2, width + 4, height + 4, 5);
      pen.stroke();
    }
  }

  // Arcs from a note to those that the model looked at, as strong as it did.
  drawLooks(pen, at) {
    const { note, shares } = this.looks,
      most = Math.max(...shares, 1e-9);
    const middle = (its) => [at.x(its[0] + its[1] / 2), at.y(its[2]) + at.row / 2];
    const [x1, y1] = [at.x(note[0]), at.y(note[2]) + at.row / 2];
    pen.strokeStyle = color("--glow");
    shares.forEach((share, number) => {
      if (share < most / 6) return;
      const [x0, y0] = middle(this.piece.notes[number]);
      pen.globalAlpha = 0.25 + 0.75 * (share / most);
      pen.lineWidth = 1 + 3 * (share / most);
      pen.beginPath();
      pen.moveTo(x1, y1);
      pen.quadraticCurveTo(
        (x0 + x1) / 2,
        Math.max(at.ruler, Math.min(y0, y1) - 18 - 40 * (share / most)),
        x0,
        y0,
      );
      pen.stroke();
    });
    pen.globalAlpha = 1;
  }

  // What is at a place of the canvas: a note, a bar, a step.
  find(x, y) {
    const { at, piece } = this,
      step = Math.max(0, Math.min(at.step(x), at.starts.at(-1) - 1));
    const bar = Math.min(piece.bars.length - 1, at.starts.findIndex((start) => start > step) - 1);
    const slack = Math.max(at.row / 2, 6);
    let found = null,
      least = Infinity;
    for (const note of piece.notes) {
      const inside = x >= at.x(note[0]) - 2 && x <= at.x(note[0] + note[1]) + 2;
      const away = Math.abs(y - (at.y(note[2]) + at.row / 2));
      if (inside && away <= slack && away < least) [found, least] = [note, away];
    }
    return { note: y > at.ruler ? found : null, bar, step, isRuler: y <= at.ruler };
  }

  // Says a note in words.
  words(note, name) {
    return `${noteName(note[2])}, ${name}, ${note[5] ? "yours" : "the model's"}`;
  }

  keepInView(step) {
    const frame = this.canvas.parentElement,
      x = this.at.x(step);
    if (x < frame.scrollLeft || x > frame.scrollLeft + frame.clientWidth - 60)
      frame.scrollLeft = Math.max(0, x - 60);
  }
}
