// How a piece lies in the roll: steps and pitches as pixels of its canvas, and back.
import { barStarts } from "./piece.js";

/**
 * @import { Note, Piece } from "./piece.js"
 *
 * What is shown: the size of the canvas, how far it is scrolled, and how much is zoomed in.
 * @typedef {{ width: number, height: number, left: number, top: number, zoom: number,
 *   isTouch: boolean, isSmall: boolean, hasChords: boolean,
 *   isDrummed: boolean,
 *   range: [low: number, high: number] | null }} Window
 * @typedef {{ note: Note | null, isEnd: boolean, bar: number, step: number, pitch: number,
 *   isRuler: boolean, isKeys: boolean }} Place
 */

const LEAST_BAR = 84; // pixels of a bar, before the roll scrolls
const MARGIN = 3; // rows beyond the highest and the lowest note
const LEAST_ROWS = 25;
const END = 7; // pixels at the end of a note, by which it is stretched

export class View {
  /**
   * @param {Piece} piece
   * @param {Window} window
   */
  constructor(piece, window) {
    const { width, height, left, top, zoom, isTouch, isSmall, hasChords, isDrummed, range } =
      window;
    this.piece = piece;
    this.isDrummed = isDrummed;
    this.starts = barStarts(piece);
    this.left = left;
    this.top = top;
    this.keys = isSmall ? 0 : isDrummed ? 116 : 44; // names of drums are long
    this.numbers = isSmall ? 0 : isTouch ? 44 : 24; // of bars; below them are their chords
    this.ruler = this.numbers + (hasChords ? (isTouch ? 46 : 30) : 0);
    this.isTouch = isTouch;
    const steps = Math.max(this.starts[this.starts.length - 1], 1);
    const fit = width - this.keys;
    const usual = isSmall ? fit : Math.max(fit, LEAST_BAR * piece.bars.length);
    this.perStep = Math.max(fit, usual * zoom) / steps;
    const [low, high] = range ?? rangeOf(piece, isSmall, isDrummed ? [38, 56] : [57, 79]);
    this.low = low;
    this.high = high;
    const rows = this.high - this.low + 1;
    const least = isSmall ? 0 : (isTouch ? 10 : 6) * Math.max(1, zoom);
    this.row = Math.max((height - this.ruler) / rows, least);
    this.sheetWidth = Math.round(this.keys + steps * this.perStep);
    this.sheetHeight = Math.round(this.ruler + rows * this.row);
    this.end = steps;
  }

  /** @param {number} step */
  x(step) {
    return this.keys + step * this.perStep - this.left;
  }

  /** @param {number} pitch */
  y(pitch) {
    return this.ruler + (this.high - pitch) * this.row - this.top;
  }

  /** @param {number} x */
  step(x) {
    const step = (x + this.left - this.keys) / this.perStep;
    return Math.max(0, Math.min(step, this.end - 1e-6));
  }

  /** @param {number} y */
  pitch(y) {
    const pitch = this.high - Math.floor((y + this.top - this.ruler) / this.row);
    return Math.max(0, Math.min(127, pitch));
  }

  /**
   * The rectangle of a note: x, y, width, height.
   * @param {Note} note
   * @returns {[x: number, y: number, width: number, height: number]}
   */
  box([onset, duration, pitch]) {
    const height = Math.max(2.5, Math.min(this.row * 0.92, 18));
    const width = Math.max(2, duration * this.perStep - 1.5);
    return [this.x(onset) + 0.5, this.y(pitch) + (this.row - height) / 2, width, height];
  }

  /**
   * What is at a place of the canvas. A finger or a mouse need not meet a note exactly.
   * @param {number} x
   * @param {number} y
   * @returns {Place}
   */
  find(x, y) {
    const step = this.step(x);
    const slack = Math.max(this.row / 2, this.isTouch ? 14 : 6);
    /** @type {Note | null} */
    let note = null;
    let least = Infinity;
    for (const each of this.piece.notes) {
      const [left, top, width, height] = this.box(each);
      const away = Math.abs(y - (top + height / 2));
      if (x < left - 2 || x > left + width + 2 || away > slack || away >= least) continue;
      [note, least] = [each, away];
    }
    const isRuler = y <= this.ruler;
    const isKeys = !isRuler && x < this.keys;
    const [left, , width] = note ? this.box(note) : [0, 0, 0];
    return {
      note: isRuler || isKeys ? null : note,
      isEnd: x > left + width - Math.min(END, width / 3),
      bar: this.starts.findIndex((start) => start > step) - 1,
      step,
      pitch: this.pitch(y),
      isRuler,
      isKeys,
    };
  }
}

/**
 * The lowest and the highest pitch that are shown.
 * @param {Piece} piece
 * @param {boolean} isSmall
 * @param {[low: number, high: number]} usual of a piece without notes
 */
function rangeOf(piece, isSmall, usual) {
  const pitches = piece.notes.map((note) => note[2]);
  const margin = isSmall ? 0 : MARGIN;
  let low = Math.max(0, (pitches.length ? Math.min(...pitches) : usual[0]) - margin);
  let high = Math.min(127, (pitches.length ? Math.max(...pitches) : usual[1]) + margin);
  while (high - low + 1 < (isSmall ? 13 : LEAST_ROWS)) {
    if (high < 127) high++;
    if (low > 0) low--;
  }
  return [low, high];
}
