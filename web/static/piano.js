// The piano of the page: mouse, touch, the computer's keys, and MIDI keyboards.
import { isBlack, noteName } from "./piece.js";
import { make } from "./dom.js";

const OF_PITCHES = [48, 60]; // the lowest key, C3, and the one that is seen and that A plays, C4
const OF_DRUMS = [35, 36]; // the lowest drum of General MIDI, and the kick
const SPAN = 36;
const LETTERS = ["a", "w", "s", "e", "d", "f", "t", "g", "y", "h", "u", "j", "k", "o", "l", "p"];

/**
 * Whether one types into an element, so that keys are its own.
 * @param {EventTarget | null} target
 */
export const isTyping = (target) =>
  target instanceof Element &&
  Boolean(target.closest("select, textarea, input[type=text], input[type=number]"));

/**
 * Seconds since an event: a page that is busy hears of it late.
 * @param {{ timeStamp: number }} event
 */
const since = ({ timeStamp }) => Math.max(0, performance.now() - timeStamp) / 1000;

export class Piano {
  /**
   * @param {HTMLElement} element
   * @param {(pitch: number, velocity: number, ago: number) => void} onPress how loud, 0 where nothing
   *   tells, and how many seconds before now
   * @param {(pitch: number, ago: number) => void} onRelease
   */
  constructor(element, onPress, onRelease) {
    this.element = element;
    this.onPress = onPress;
    this.onRelease = onRelease;
    /** @type {Map<string, number>} the pitch that each finger, key, or note of MIDI holds */
    this.held = new Map();
    /** @type {Map<number, HTMLButtonElement>} */
    this.keys = new Map();
    this.octave = OF_PITCHES[1];
    this.fit(false);
    element.addEventListener("pointerdown", (event) => this.point(event));
    element.addEventListener("pointermove", (event) => {
      if (event.buttons || event.pointerType === "touch") this.point(event, true);
    });
    for (const kind of /** @type {const} */ (["pointerup", "pointercancel"]))
      addEventListener(kind, (event) => this.release(`pointer${event.pointerId}`, since(event)));
    element.addEventListener("keydown", (event) => this.onKeyOfPiano(event));
    element.addEventListener("keyup", (event) => {
      if (event.key === "Enter") this.release("enter", since(event));
    });
    addEventListener("keydown", (event) => this.onLetter(event));
    addEventListener("keyup", (event) =>
      this.release(`letter${event.key.toLowerCase()}`, since(event)),
    );
    addEventListener("blur", () => {
      for (const source of [...this.held.keys()]) this.release(source);
    });
  }

  /**
   * Has the keys of pitches, or of drums.
   * @param {boolean} isDrummed
   */
  fit(isDrummed) {
    const [lowest, first] = isDrummed ? OF_DRUMS : OF_PITCHES;
    if (this.keys.keys().next().value === lowest) return;
    for (const source of [...this.held.keys()]) this.release(source);
    this.element.replaceChildren();
    this.keys.clear();
    for (let pitch = lowest; pitch <= lowest + SPAN; pitch++) this.addKey(pitch);
    this.octave = first;
    this.key(first).tabIndex = 0;
    this.element.scrollLeft = this.key(first).offsetLeft - this.element.offsetLeft;
  }

  /** @param {number} pitch */
  key(pitch) {
    return /** @type {HTMLButtonElement} */ (this.keys.get(pitch));
  }

  /** @param {number} pitch */
  addKey(pitch) {
    const key = make("button", { type: "button", tabIndex: -1 }, pitch % 12 ? "" : noteName(pitch));
    key.className = isBlack(pitch) ? "key black" : "key";
    key.dataset.pitch = String(pitch);
    key.setAttribute("aria-label", noteName(pitch));
    this.element.append(key);
    this.keys.set(pitch, key);
  }

  /**
   * @param {string} source
   * @param {number} pitch
   * @param {number} ago
   * @param {number} velocity
   */
  press(source, pitch, ago, velocity = 0) {
    if (this.held.get(source) === pitch) return;
    this.release(source);
    this.held.set(source, pitch);
    this.keys.get(pitch)?.classList.add("on");
    this.onPress(pitch, velocity, ago);
  }

  /**
   * @param {string} source
   * @param {number} ago
   */
  release(source, ago = 0) {
    const pitch = this.held.get(source);
    if (pitch === undefined) return;
    this.held.delete(source);
    if (![...this.held.values()].includes(pitch)) this.keys.get(pitch)?.classList.remove("on");
    this.onRelease(pitch, ago);
  }

  /**
   * Shows lower or higher keys where not all fit.
   * @param {number} octaves
   */
  scroll(octaves) {
    const octave = this.key(60).offsetLeft - this.key(48).offsetLeft;
    this.element.scrollBy({ left: octaves * octave, behavior: "smooth" });
  }

  /** @param {PointerEvent} event */
  point(event, isMove = false) {
    if (event.pointerType !== "touch" && event.button > 0) return;
    const there = document.elementFromPoint(event.clientX, event.clientY);
    const key = /** @type {HTMLElement | null | undefined} */ (there?.closest("#piano .key"));
    const source = `pointer${event.pointerId}`;
    if (isMove && !this.held.has(source)) return;
    if (!key) return this.release(source, since(event));
    if (!isMove && event.target instanceof Element)
      event.target.releasePointerCapture(event.pointerId);
    this.press(source, Number(key.dataset.pitch), since(event));
  }

  /** @param {KeyboardEvent} event */
  onKeyOfPiano(event) {
    const key = /** @type {HTMLElement} */ (event.target);
    const pitch = Number(key.dataset.pitch);
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 12, ArrowDown: -12 };
    const next = this.keys.get(pitch + (steps[/** @type {"ArrowUp"} */ (event.key)] ?? NaN));
    if (next) {
      key.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      event.preventDefault();
    } else if (event.key === "Enter" && !event.repeat) this.press("enter", pitch, since(event));
  }

  /** @param {KeyboardEvent} event */
  onLetter(event) {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target))
      return;
    const letter = event.key.toLowerCase();
    const at = LETTERS.indexOf(letter);
    if (at >= 0) this.press(`letter${letter}`, this.octave + at, since(event));
    else if (letter === "z") this.octave = Math.max(24, this.octave - 12);
    else if (letter === "x") this.octave = Math.min(96, this.octave + 12);
    else return;
    event.preventDefault();
  }

  /** @param {Pick<MIDIMessageEvent, "data" | "timeStamp">} event */
  onMidi({ data, timeStamp }) {
    const [status, pitch, velocity] = data ?? [];
    const kind = status & 0xf0;
    const ago = since({ timeStamp });
    if (kind === 0x90 && velocity) this.press(`midi${pitch}`, pitch, ago, velocity);
    else if (kind === 0x80 || kind === 0x90) this.release(`midi${pitch}`, ago);
  }
}
