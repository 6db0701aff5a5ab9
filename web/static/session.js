// What was done: a list of states to go back and forth in.
import { isPiece } from "./piece.js";

/** @import { Piece } from "./piece.js" */

/**
 * What was asked of a model.
 * @typedef {{ model: string, how: string, piece: Piece, settings: Record<string, any>,
 *   variations: number, random_seed: number, opens?: number, programs?: number[], bars?: [first: number, end: number] | null,
 *   note?: number, instead?: [pitch: number, program: number], written?: Ask | null }} Ask
 *
 * `written` is what was asked, null where a person put notes in; `before` is the place in the list
 * of the state from which this one was made; `tune` names the music that it is about; `chords` are
 * those that are asked for, bar by bar.
 * @typedef {{ tune: string, piece: Piece, label: string, written: Ask | null, before: number | null,
 *   variations: Piece[] | null, chosen: number, chords: string[] }} State
 */

export const MOST_STATES = 32;
export const VARIATIONS = 4; // of a click
const MOST_CHORDS = 512; // bars

export class Session {
  constructor() {
    /** @type {State[]} */
    this.states = [];
    this.at = -1;
  }

  /** @returns {State | undefined} */
  get now() {
    return this.states[this.at];
  }

  get canUndo() {
    return this.at > 0;
  }

  get canRedo() {
    return this.at < this.states.length - 1;
  }

  /** The same, which stays as it is now. */
  copy() {
    return Object.assign(new Session(), { states: [...this.states], at: this.at });
  }

  /** @param {State} state */
  push(state) {
    this.states.length = this.at + 1;
    this.states.push(Object.freeze(state));
    this.at += 1;
  }

  undo() {
    if (this.canUndo) this.at -= 1;
  }

  redo() {
    if (this.canRedo) this.at += 1;
  }

  /**
   * The state in which a note was first there, and stayed: it was written, or put in, to make it.
   * @param {(piece: Piece) => boolean} has
   */
  origin(has) {
    let state = this.states[this.at];
    while (state.before !== null && has(this.states[state.before].piece))
      state = this.states[state.before];
    return state;
  }

  /**
   * How one of the variations came to be: it was chosen before, and perhaps edited, or only written.
   * @param {number} number
   * @returns {Pick<State, "before" | "written">}
   */
  source(number) {
    const piece = this.now?.variations?.[number];
    const known = this.states.findLastIndex((state, at) => at < this.at && state.piece === piece);
    if (known >= 0) return { before: known, written: null };
    let state = this.states[this.at];
    while (!state.written && state.before !== null) state = this.states[state.before];
    return { before: state.before, written: state.written };
  }

  /**
   * Some states up to now, and if asked for those that were undone; each piece once.
   * @param {number} most
   * @param {boolean} hasUndone
   */
  packed(most, hasUndone) {
    /** @type {Piece[]} */
    const pieces = [];
    const last = hasUndone ? this.states.length : this.at + 1;
    const first = Math.max(0, Math.min(last - most, this.at));
    /** @param {Piece} piece */
    const put = (piece) =>
      pieces.includes(piece) ? pieces.indexOf(piece) : pieces.push(piece) - 1;
    const states = this.states.slice(first, Math.min(last, first + most)).map((state) => ({
      ...state,
      piece: put(state.piece),
      variations: state.variations?.map(put) ?? null,
      before: state.before !== null && state.before >= first ? state.before - first : null,
      written: state.written && requestWith(put, state.written),
    }));
    return { pieces, states, at: this.at - first };
  }

  /**
   * Goes back to states that were packed; throws where they are none.
   * @param {any} packed
   */
  unpack({ pieces, states, at }) {
    const areThere = Array.isArray(pieces) && pieces.every(isPiece);
    if (!areThere || !Array.isArray(states) || !states.length) throw new Error("no session");
    /** @param {number} place */
    const get = (place) => {
      if (!Number.isInteger(place) || !pieces[place]) throw new Error("no piece");
      return pieces[place];
    };
    this.states = states
      .slice(-MOST_STATES)
      .map(({ tune, piece, label, written, before, variations, chosen, chords }, number) =>
        Object.freeze({
          tune: String(tune),
          piece: get(piece),
          label: String(label),
          before: Number.isInteger(before) && before >= 0 && before < number ? before : null,
          written: written ? requestWith(get, written) : null,
          variations: variations?.slice(0, VARIATIONS).map(get) ?? null,
          chosen: Number.isInteger(chosen) && variations?.[chosen] !== undefined ? chosen : 0,
          chords: Array.isArray(chords) ? chords.slice(0, MOST_CHORDS).map(String) : [],
        }),
      );
    this.at = Number.isInteger(at) && this.states[at] ? at : this.states.length - 1;
  }
}

/**
 * A request with something else in the place of its piece, and so in the request that it names.
 * @param {(piece: any) => any} change
 * @param {any} asked
 * @returns {any}
 */
function requestWith(change, { written, ...request }) {
  const changed = { ...request, piece: change(request.piece) };
  return written ? { ...changed, written: requestWith(change, written) } : changed;
}
