// A session as a text, for a link and for what the browser keeps.
import { MOST_STATES } from "./session.js";

/** @import { Session } from "./session.js" */

/**
 * `characters` of the text if it holds several states, `unpacked` of what it says; `hasUndone`:
 * what was undone is in it, too.
 * @typedef {{ characters: number, unpacked: number, hasUndone: boolean }} Bounds
 */

/** @type {Bounds} */
export const LINK = { characters: 32000, unpacked: 2 ** 20, hasUndone: false };
/** @type {Bounds} */
export const KEPT = { characters: 2 ** 20, unpacked: 2 ** 22, hasUndone: true };

/**
 * The text of a session, as far back as the bounds allow; empty where not even the last state fits.
 * @param {Session} session
 * @param {Record<string, unknown>} data that the text says besides
 * @param {Bounds} bounds
 */
export async function textOf(session, data, bounds) {
  for (let most = MOST_STATES; ; most >>= 1) {
    const whole = JSON.stringify({ ...data, ...session.packed(most, bounds.hasUndone) });
    const text = whole.length < bounds.unpacked ? await packedText(whole) : "";
    if (most === 1 || (text && text.length < bounds.characters)) return text;
  }
}

/**
 * What a text says; throws where it says nothing, or more than the bounds allow.
 * @param {string} text
 * @param {Bounds} bounds
 * @returns {Promise<any>}
 */
export async function said(text, bounds) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const packed = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  const stream = new DecompressionStream("deflate-raw");
  return JSON.parse(new TextDecoder().decode(await through(stream, packed, bounds.unpacked)));
}

/** @param {string} whole */
async function packedText(whole) {
  const bytes = new TextEncoder().encode(whole);
  const packed = await through(new CompressionStream("deflate-raw"), bytes, Infinity);
  let text = "";
  for (const byte of packed) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/**
 * @param {CompressionStream | DecompressionStream} stream
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {number} most
 */
async function through(stream, bytes, most) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  /** @type {BlobPart[]} */
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
