// What was done: a list of states to go back and forth in, and the link that holds it.
import { isPiece } from "./piece.js";

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

  // The latest states up to now, each piece once: as text can hold them.
  packed(most) {
    const pieces = [],
      first = Math.max(0, this.at + 1 - most);
    const put = (piece) =>
      pieces.includes(piece) ? pieces.indexOf(piece) : pieces.push(piece) - 1;
    const states = this.states.slice(first, this.at + 1).map((state) => ({
      ...state,
      piece: put(state.piece),
      variations: state.variations?.map(put) ?? null,
      before: state.before != null && state.before >= first ? state.before - first : null,
      written: state.written && { ...state.written, piece: put(state.written.piece) },
    }));
    return { pieces, states };
  }

  // Goes back to states that were packed; throws where they are none.
  unpack({ pieces, states }) {
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
          written: written ? { ...written, piece: get(written.piece) } : null,
          variations: variations?.slice(0, VARIATIONS).map(get) ?? null,
          chosen: Number.isInteger(chosen) && variations?.[chosen] !== undefined ? chosen : 0,
        }),
      );
    this.at = this.states.length - 1;
  }
}

const MOST_TEXT = 2 ** 20; // characters that a link holds, unpacked
const MOST_LINK = 32000; // characters of a link of several states
const MOST_STATES = 32;
export const VARIATIONS = 4; // of a click

async function through(stream, bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    size += value.length;
    if (size > MOST_TEXT) throw new Error("too long");
    parts.push(value);
  }
}

// The text of a session, as far back as is short enough.
export async function toLink(session, data) {
  for (let most = MOST_STATES; ; most >>= 1) {
    const whole = JSON.stringify({ ...data, ...session.packed(most) });
    const text = whole.length < MOST_TEXT ? await packedText(whole) : "";
    if (most === 1 || (text && text.length < MOST_LINK)) return text;
  }
}

async function packedText(whole) {
  const packed = await through(
    new CompressionStream("deflate-raw"),
    new TextEncoder().encode(whole),
  );
  let text = "";
  for (const byte of packed) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function fromLink(text) {
  const packed = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) =>
    c.charCodeAt(0),
  );
  return JSON.parse(
    new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), packed)),
  );
}
