// What was done: a list of states to go back and forth in, and the text that holds it.
import { isPiece } from "./piece.js";

const MOST_STATES = 32;
export const VARIATIONS = 4; // of a click
// Bounds of a session's text: in a link, and as the browser keeps it, which has what was undone, too.
// `characters` of the text if it holds several states, `unpacked` of what it says.
export const LINK = { characters: 32000, unpacked: 2 ** 20, hasUndone: false };
export const KEPT = { characters: 2 ** 20, unpacked: 2 ** 22, hasUndone: true };

export class Session {
  constructor() {
    this.states = [];
    this.at = -1;
  }
  get now() {
    return this.states[this.at];
  }
  get canUndo() {
    return this.at > 0;
  }
  get canRedo() {
    return this.at < this.states.length - 1;
  }

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

  // The state in which a note was first there, and stayed: it was written, or put in, to make it.
  origin(has) {
    let state = this.now;
    while (state.before != null && has(this.states[state.before].piece))
      state = this.states[state.before];
    return state;
  }

  // Some states up to now, and if asked for those that were undone; each piece once.
  packed(most, hasUndone) {
    const pieces = [],
      last = hasUndone ? this.states.length : this.at + 1;
    const first = Math.max(0, Math.min(last - most, this.at));
    const put = (piece) =>
      pieces.includes(piece) ? pieces.indexOf(piece) : pieces.push(piece) - 1;
    const states = this.states.slice(first, Math.min(last, first + most)).map((state) => ({
      ...state,
      piece: put(state.piece),
      variations: state.variations?.map(put) ?? null,
      before: state.before != null && state.before >= first ? state.before - first : null,
      written: state.written && requestWith(put, state.written),
    }));
    return { pieces, states, at: this.at - first };
  }

  // Goes back to states that were packed; throws where they are none.
  unpack({ pieces, states, at }) {
    if (
      !Array.isArray(pieces) ||
      !pieces.every(isPiece) ||
      !Array.isArray(states) ||
      !states.length
    )
      throw new Error("no session");
    const get = (at) => {
      if (!Number.isInteger(at) || !pieces[at]) throw new Error("no piece");
      return pieces[at];
    };
    this.states = states
      .slice(-MOST_STATES)
      .map(({ piece, label, written, before, variations, chosen }, number) =>
        Object.freeze({
          piece: get(piece),
          label: String(label),
          before: Number.isInteger(before) && before >= 0 && before < number ? before : null,
          written: written ? requestWith(get, written) : null,
          variations: variations?.slice(0, VARIATIONS).map(get) ?? null,
          chosen: Number.isInteger(chosen) && variations?.[chosen] !== undefined ? chosen : 0,
        }),
      );
    this.at = Number.isInteger(at) && this.states[at] ? at : this.states.length - 1;
  }
}

// A request with something else in the place of its piece, and so in the request that it names.
function requestWith(change, { written, ...request }) {
  const its = { ...request, piece: change(request.piece) };
  return written ? { ...its, written: requestWith(change, written) } : its;
}

async function through(stream, bytes, most) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    size += value.length;
    if (size > most) throw new Error("too long");
    parts.push(value);
  }
}

// The text of a session, as far back as the bounds allow; empty where not even the last state fits.
export async function textOf(session, data, bounds) {
  for (let most = MOST_STATES; ; most >>= 1) {
    const whole = JSON.stringify({ ...data, ...session.packed(most, bounds.hasUndone) });
    const text = whole.length < bounds.unpacked ? await packedText(whole) : "";
    if (most === 1 || (text && text.length < bounds.characters)) return text;
  }
}

async function packedText(whole) {
  const bytes = new TextEncoder().encode(whole);
  const packed = await through(new CompressionStream("deflate-raw"), bytes, Infinity);
  let text = "";
  for (const byte of packed) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

// What a text says; throws where it says nothing, or more than the bounds allow.
export async function said(text, bounds) {
  const packed = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) =>
    c.charCodeAt(0),
  );
  const stream = new DecompressionStream("deflate-raw");
  return JSON.parse(new TextDecoder().decode(await through(stream, packed, bounds.unpacked)));
}
