// What was done: a list of states to go back and forth in, and the link that holds one of them.

export class Session {
  constructor() { this.states = []; this.at = -1; }
  get now() { return this.states[this.at]; }
  get canUndo() { return this.at > 0; }
  get canRedo() { return this.at < this.states.length - 1; }

  push(state) {
    this.states.length = this.at + 1;
    this.states.push(Object.freeze(state));
    this.at += 1;
  }
  undo() { if (this.canUndo) this.at -= 1; }
  redo() { if (this.canRedo) this.at += 1; }

  // The state in which a note was first there, and stayed: it was written, or put in, to make it.
  origin(has) {
    let state = this.now;
    while (state.before != null && has(this.states[state.before].piece)) state = this.states[state.before];
    return state;
  }
}

const MOST_LINK = 2 ** 20; // characters of text in a link

async function through(stream, bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    size += value.length;
    if (size > MOST_LINK) throw new Error("too long");
    parts.push(value);
  }
}

export async function toLink(data) {
  const packed = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(data)));
  let text = "";
  for (const byte of packed) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function fromLink(text) {
  const packed = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), packed)));
}
