// The piano roll: notes, bars, keys, the cursor, what is selected, what was looked at. The canvas
// is as large as what is seen of it, and stays while the sheet under it scrolls.
import { DRUMS, barOf, isBlack, keyOf, noteName } from "./piece.js";
import { View } from "./view.js";

/** @import { Note, Piece } from "./piece.js" */

/** @type {Map<string, string>} colors of the style sheet, read once a drawing */
const palette = new Map();

/** @param {string} name */
function color(name) {
  const known = palette.get(name);
  if (known !== undefined) return known;
  const read = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  palette.set(name, read);
  return read;
}

/**
 * How dark a note is: one that the model found likely, fully; one in a hundred, half.
 * @param {number} nats
 */
const paleness = (nats) => Math.max(0.25, Math.min(1, 1.15 - nats / 7));

/**
 * The color of a program's notes, as a variable of the style sheet.
 * @param {number[]} programs
 * @param {number} program
 */
export function colorName(programs, program) {
  const place = programs.indexOf(program); // -1: of another model's piece
  return `--v${(place < 0 ? program : place) % 16}`;
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {number} x
 * @param {number} y0
 * @param {number} y1
 */
function line(pen, x, y0, y1) {
  pen.moveTo(Math.round(x) + 0.5, y0);
  pen.lineTo(Math.round(x) + 0.5, y1);
}

/**
 * The form of a drum's note, struck and fading: a band's drums share rows with its bass.
 * @param {CanvasRenderingContext2D} pen
 * @param {number} x
 * @param {number} y
 * @param {number} wide
 * @param {number} high
 */
function wedge(pen, x, y, wide, high) {
  pen.moveTo(x, y);
  pen.lineTo(x + wide, y + high / 2);
  pen.lineTo(x, y + high);
  pen.closePath();
}

/**
 * Draws a small picture of a piece into a canvas, as large as it is shown.
 * @param {HTMLCanvasElement} canvas
 * @param {Piece} piece
 * @param {number[]} programs
 */
export function drawSmall(canvas, piece, programs) {
  const roll = new Roll(canvas, programs);
  roll.show(piece);
}

export class Roll {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {number[]} programs of the model, for the colors
   * @param {{ frame: HTMLElement, sheet: HTMLElement, mark: HTMLElement } | null} parts that
   *   scroll, are as large as the piece, and move with the music; a small picture has none
   */
  constructor(canvas, programs = [], parts = null) {
    this.canvas = canvas;
    this.programs = programs;
    /** @type {string[]} the names of drums, by their pitches */
    this.drums = [];
    this.parts = parts;
    this.zoom = 1;
    this.hasLoudness = false; // then notes are as high as they are loud
    this.hasChords = false; // then there is room for them below the numbers of bars
    this.onView = (/** @type {View} */ _) => {}; // hears how the piece lies now
    /** @type {Piece | null} */
    this.piece = null;
    /** @type {View | null} */
    this.view = null;
    /** @type {number | null} the step that sounds */
    this.cursor = null;
    /** @type {Note[]} */
    this.sounding = [];
    /** @type {[first: number, end: number] | null} bars */
    this.selection = null;
    /** @type {Set<string>} the keys of the notes that are selected */
    this.chosen = new Set();
    /** @type {Set<number>} programs that are not heard */
    this.silent = new Set();
    /** @type {Map<string, number>} how unlikely notes are, in nats, by their keys */
    this.surprise = new Map();
    /** @type {{ x: number, y: number, width: number, height: number } | null} */
    this.box = null;
    /** @type {[low: number, high: number] | null} the pitches that are shown while one edits */
    this.range = null;
    /** @type {{ note: Note, shares: number[] } | null} */
    this.looks = null;
    parts?.frame.addEventListener("scroll", () => this.draw());
  }

  /** @param {Piece} piece */
  show(piece) {
    const isFirst = !this.piece;
    this.piece = piece;
    this.draw();
    if (isFirst) this.center();
  }

  /** Scrolls up or down to the middle of the notes. */
  center() {
    const { parts, view } = this;
    if (parts && view) parts.frame.scrollTop = (view.sheetHeight - parts.frame.clientHeight) / 2;
  }

  /**
   * Zooms in or out about a place of the canvas.
   * @param {number} factor
   */
  zoomBy(factor, x = (this.parts?.frame.clientWidth ?? 0) / 2) {
    const { parts, view } = this;
    if (!parts || !view) return;
    const step = view.step(x);
    const pitch = view.high - (view.top + parts.frame.clientHeight / 2) / view.row;
    this.zoom = Math.max(0.25, Math.min(8, this.zoom * factor));
    this.draw();
    parts.frame.scrollLeft += this.view ? this.view.x(step) - x : 0;
    parts.frame.scrollTop =
      (view.high - pitch) * (this.view?.row ?? 0) - parts.frame.clientHeight / 2;
    this.draw();
  }

  /**
   * Moves the cursor; notes are drawn anew only when others sound.
   * @param {number | null} step
   */
  moveTo(step) {
    this.cursor = step;
    const sounding = (this.piece?.notes ?? []).filter((note) => this.isSounding(note));
    const isSame =
      sounding.length === this.sounding.length &&
      sounding.every((note, at) => note === this.sounding[at]);
    if (isSame) this.placeMark();
    else this.draw();
    if (step !== null) this.keepInView(step);
  }

  /** @param {Note} note */
  isSounding([onset, duration]) {
    return this.cursor !== null && onset <= this.cursor && this.cursor < onset + duration;
  }

  placeMark() {
    const { parts, view, cursor } = this;
    if (!parts || !view) return;
    const x = cursor === null ? 0 : Math.min(view.x(cursor), view.x(view.end) - 1);
    parts.mark.hidden = cursor === null || x < view.keys;
    parts.mark.style.transform = `translateX(${x + view.left - 1}px)`;
  }

  /** @param {number} step */
  keepInView(step) {
    const { parts, view } = this;
    if (!parts || !view) return;
    const x = view.x(step);
    if (x < view.keys || x > parts.frame.clientWidth - 60)
      parts.frame.scrollLeft = Math.max(0, x + view.left - view.keys - 60);
  }

  /** How the piece lies in the canvas now. */
  look() {
    const { canvas, parts, piece, zoom } = this;
    if (!piece) return null;
    const seen = parts?.frame ?? canvas;
    return new View(piece, {
      width: seen.clientWidth,
      height: seen.clientHeight,
      left: parts?.frame.scrollLeft ?? 0,
      top: parts?.frame.scrollTop ?? 0,
      zoom,
      isTouch: matchMedia("(pointer: coarse)").matches,
      isSmall: !parts,
      hasChords: this.hasChords,
      isDrummed: this.isDrummed(piece),
      range: this.range,
    });
  }

  /**
   * Whether drums alone play: their names stand in the place of keys.
   * @param {Piece} piece
   */
  isDrummed({ notes }) {
    const programs = notes.length ? notes.map((note) => note[4]) : this.programs;
    return programs.length > 0 && programs.every((program) => program === DRUMS);
  }

  draw() {
    const { canvas, parts, piece } = this;
    const view = (this.view = this.look());
    const pen = canvas.getContext("2d");
    if (!view || !piece || !pen) return;
    this.onView(view);
    palette.clear();
    this.sounding = [];
    const { clientWidth: width, clientHeight: height } = parts?.frame ?? canvas;
    if (parts) {
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      parts.sheet.style.width = `${view.sheetWidth}px`;
      parts.sheet.style.height = `${view.sheetHeight}px`;
    }
    const ratio = devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    if (parts) this.drawGround(pen, view, width, height);
    for (const note of piece.notes) this.drawNote(pen, view, note, width);
    if (this.looks) this.drawLooks(pen, view, this.looks);
    if (this.box) {
      pen.fillStyle = color("--select");
      pen.strokeStyle = color("--accent");
      pen.lineWidth = 1;
      pen.fillRect(this.box.x, this.box.y, this.box.width, this.box.height);
      pen.strokeRect(this.box.x, this.box.y, this.box.width, this.box.height);
    }
    if (parts) {
      this.drawKeys(pen, view, height);
      this.drawRuler(pen, view, width);
    }
    this.placeMark();
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {View} view
   * @param {number} width
   * @param {number} height
   */
  drawGround(pen, view, width, height) {
    pen.fillStyle = color("--black-key");
    for (let pitch = view.low; pitch <= view.high; pitch++)
      if (isBlack(pitch)) pen.fillRect(0, view.y(pitch), width, view.row);
    if (this.selection) {
      const [x0, x1] = this.selection.map((bar) => view.x(view.starts[bar]));
      pen.fillStyle = color("--select");
      pen.fillRect(x0, 0, x1 - x0, height);
    }
    pen.strokeStyle = color("--line");
    pen.lineWidth = 1;
    view.piece.bars.forEach((_, bar) => {
      const start = view.starts[bar];
      if (view.x(view.starts[bar + 1]) < 0 || view.x(start) > width) return;
      pen.beginPath();
      line(pen, view.x(start), 0, height);
      pen.stroke();
      pen.globalAlpha = 0.45;
      pen.beginPath();
      for (const [, step] of barOf(view.piece, bar).beats)
        if (step > 0) line(pen, view.x(start + step), view.ruler, height);
      pen.stroke();
      pen.globalAlpha = 1;
    });
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {View} view
   * @param {Note} note
   * @param {number} width of the canvas
   */
  drawNote(pen, view, note, width) {
    const [x, top, wide, whole] = view.box(note);
    const high = this.hasLoudness ? whole * (0.4 + 0.6 * (note[3] / 127)) : whole;
    const y = top + (whole - high) / 2;
    if (x + wide < 0 || x > width) return;
    pen.beginPath();
    if (note[4] === DRUMS) wedge(pen, x, y, wide, high);
    else pen.roundRect(x, y, wide, high, Math.min(4, high / 2));
    pen.fillStyle = color(note[5] ? "--own" : colorName(this.programs, note[4]));
    const shade = this.silent.has(note[4]) ? 0.25 : 1;
    pen.globalAlpha = shade * (note[5] ? 1 : paleness(this.surprise.get(keyOf(note)) ?? 0));
    pen.fill();
    pen.globalAlpha = shade;
    pen.lineWidth = 1;
    pen.strokeStyle = pen.fillStyle; // a pale note is seen by its edge
    pen.stroke();
    pen.globalAlpha = 1;
    pen.strokeStyle = color("--mark");
    if (this.parts && this.isSounding(note)) {
      this.sounding.push(note);
      pen.lineWidth = 2.5;
      pen.stroke();
    }
    if (!this.chosen.has(keyOf(note))) return;
    pen.lineWidth = 2.5;
    pen.beginPath();
    pen.roundRect(x - 2, y - 2, wide + 4, high + 4, 5);
    pen.stroke();
  }

  /**
   * The keys at the left, with the names of those that the rows have room for, or names of drums.
   * @param {CanvasRenderingContext2D} pen
   * @param {View} view
   * @param {number} height
   */
  drawKeys(pen, view, height) {
    pen.fillStyle = color("--sheet");
    pen.fillRect(0, 0, view.keys, height);
    pen.font = `${Math.min(11, Math.max(9, view.row))}px system-ui, sans-serif`;
    pen.textBaseline = "middle";
    const struck = new Set(view.isDrummed ? view.piece.notes.map((note) => note[2]) : []);
    for (let pitch = view.low; pitch <= view.high; pitch++) {
      const y = view.y(pitch);
      if (view.isDrummed) {
        pen.fillStyle = color("--soft");
        if (struck.has(pitch) || (view.row >= 11 && !struck.size))
          pen.fillText(this.drums[pitch] ?? "", 4, y + view.row / 2 + 0.5, view.keys - 8);
        continue;
      }
      pen.fillStyle = color(isBlack(pitch) ? "--soft" : "--sheet");
      pen.globalAlpha = isBlack(pitch) ? 0.85 : 1;
      if (isBlack(pitch)) pen.fillRect(0, y, view.keys * 0.5, view.row);
      pen.globalAlpha = 1;
      if (pitch % 12 && !(view.row >= 11 && !isBlack(pitch))) continue;
      pen.fillStyle = color("--soft");
      pen.fillText(noteName(pitch), view.keys - 22, y + view.row / 2 + 0.5);
    }
    pen.strokeStyle = color("--line");
    pen.lineWidth = 1;
    pen.beginPath();
    line(pen, view.keys - 1, 0, height);
    pen.stroke();
  }

  /**
   * The numbers of the bars, where bars are selected.
   * @param {CanvasRenderingContext2D} pen
   * @param {View} view
   * @param {number} width
   */
  drawRuler(pen, view, width) {
    pen.fillStyle = color("--paper");
    pen.fillRect(0, 0, width, view.ruler);
    if (this.selection) {
      const [x0, x1] = this.selection.map((bar) => view.x(view.starts[bar]));
      pen.fillStyle = color("--select");
      pen.fillRect(Math.max(x0, view.keys), 0, x1 - Math.max(x0, view.keys), view.ruler);
    }
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.strokeStyle = color("--line");
    pen.lineWidth = 1;
    pen.beginPath();
    view.piece.bars.forEach((_, bar) => {
      const x = view.x(view.starts[bar]);
      if (x < view.keys - 1 || x > width) return;
      line(pen, x, 0, view.ruler);
      pen.fillStyle = color("--soft");
      pen.fillText(String(barOf(view.piece, bar).number), x + 5, view.numbers / 2 + 1);
    });
    pen.moveTo(0, view.ruler - 0.5);
    pen.lineTo(width, view.ruler - 0.5);
    pen.stroke();
  }

  /**
   * Arcs from a note to those that the model looked at, as strong as it did.
   * @param {CanvasRenderingContext2D} pen
   * @param {View} view
   * @param {{ note: Note, shares: number[] }} looks
   */
  drawLooks(pen, view, { note, shares }) {
    const most = Math.max(...shares, 1e-9);
    /** @param {Note} its */
    const middle = (its) => [view.x(its[0] + its[1] / 2), view.y(its[2]) + view.row / 2];
    const [x1, y1] = [view.x(note[0]), view.y(note[2]) + view.row / 2];
    pen.strokeStyle = color("--mark");
    shares.forEach((share, number) => {
      const other = this.piece?.notes[number];
      if (!other || share < most / 6) return;
      const [x0, y0] = middle(other);
      const height = 18 + 40 * (share / most);
      pen.globalAlpha = 0.25 + 0.75 * (share / most);
      pen.lineWidth = 1 + 3 * (share / most);
      pen.beginPath();
      pen.moveTo(x1, y1);
      pen.quadraticCurveTo((x0 + x1) / 2, Math.max(view.ruler, Math.min(y0, y1) - height), x0, y0);
      pen.stroke();
    });
    pen.globalAlpha = 1;
  }
}
