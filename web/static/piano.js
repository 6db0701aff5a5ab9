// The piano of the page: mouse, touch, the computer's keys, and MIDI keyboards.
import { noteName } from "./piece.js";

const LOWEST = 48,
  HIGHEST = 84; // C3 to C6
const LETTERS = ["a", "w", "s", "e", "d", "f", "t", "g", "y", "h", "u", "j", "k", "o", "l", "p"];
const isBlack = (pitch) => [1, 3, 6, 8, 10].includes(pitch % 12);

// Whether one types into an element, so that keys are its own.
export const isTyping = (element) =>
  Boolean(element.closest?.("select, textarea, input[type=text], input[type=number]"));

export class Piano {
  constructor(element, onPress, onRelease) {
    Object.assign(this, {
      element,
      onPress,
      onRelease,
      held: new Map(),
      keys: new Map(),
      octave: 60,
    });
    for (let pitch = LOWEST; pitch <= HIGHEST; pitch++) this.addKey(pitch);
    this.keys.get(60).tabIndex = 0;
    element.scrollLeft = this.keys.get(60).offsetLeft - element.offsetLeft;
    element.addEventListener("pointerdown", (event) => this.point(event));
    element.addEventListener("pointermove", (event) => {
      if (event.buttons || event.pointerType === "touch") this.point(event, true);
    });
    for (const kind of ["pointerup", "pointercancel"])
      addEventListener(kind, (event) => this.release(`pointer${event.pointerId}`));
    element.addEventListener("keydown", (event) => this.onKeyOfPiano(event));
    element.addEventListener("keyup", (event) => {
      if (["Enter"].includes(event.key)) this.release("enter");
    });
    addEventListener("keydown", (event) => this.onLetter(event));
    addEventListener("keyup", (event) => this.release(`letter${event.key.toLowerCase()}`));
    addEventListener("blur", () => {
      for (const source of [...this.held.keys()]) this.release(source);
    });
  }

  addKey(pitch) {
    const key = document.createElement("button");
    key.type = "button";
    key.className = isBlack(pitch) ? "key black" : "key";
    key.dataset.pitch = pitch;
    key.tabIndex = -1;
    key.setAttribute("aria-label", noteName(pitch));
    if (pitch % 12 === 0) key.textContent = noteName(pitch);
    this.element.append(key);
    this.keys.set(pitch, key);
  }

  press(source, pitch) {
    if (this.held.get(source) === pitch) return;
    this.release(source);
    this.held.set(source, pitch);
    this.keys.get(pitch)?.classList.add("on");
    this.onPress(pitch);
  }

  release(source) {
    const pitch = this.held.get(source);
    if (pitch === undefined) return;
    this.held.delete(source);
    if (![...this.held.values()].includes(pitch)) this.keys.get(pitch)?.classList.remove("on");
    this.onRelease(pitch);
  }

  // Shows lower or higher keys where not all fit.
  scroll(octaves) {
    this.element.scrollBy({
      left: octaves * (this.keys.get(60).offsetLeft - this.keys.get(48).offsetLeft),
      behavior: "smooth",
    });
  }

  point(event, isMove = false) {
    if (event.pointerType !== "touch" && event.button > 0) return;
    const key = document.elementFromPoint(event.clientX, event.clientY)?.closest?.("#piano .key");
    const source = `pointer${event.pointerId}`;
    if (isMove && !this.held.has(source)) return;
    if (!key) return this.release(source);
    if (!isMove) {
      event.target.releasePointerCapture?.(event.pointerId);
    }
    this.press(source, Number(key.dataset.pitch));
  }

  onKeyOfPiano(event) {
    const pitch = Number(event.target.dataset.pitch);
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 12, ArrowDown: -12 }[event.key];
    if (step && this.keys.has(pitch + step)) {
      event.target.tabIndex = -1;
      const next = this.keys.get(pitch + step);
      next.tabIndex = 0;
      next.focus();
      event.preventDefault();
    } else if (event.key === "Enter" && !event.repeat) this.press("enter", pitch);
  }

  onLetter(event) {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target))
      return;
    const letter = event.key.toLowerCase(),
      at = LETTERS.indexOf(letter);
    if (at >= 0) this.press(`letter${letter}`, this.octave + at);
    else if (letter === "z") this.octave = Math.max(24, this.octave - 12);
    else if (letter === "x") this.octave = Math.min(96, this.octave + 12);
    else return;
    event.preventDefault();
  }

  // Listens to all MIDI keyboards, now and later plugged in; gives how many there are.
  async connectMidi() {
    const access = await navigator.requestMIDIAccess();
    const listen = () => {
      for (const input of access.inputs.values())
        input.onmidimessage = ({ data: [status, pitch, velocity] }) => {
          if ((status & 0xf0) === 0x90 && velocity) this.press(`midi${pitch}`, pitch);
          else if ((status & 0xf0) === 0x80 || (status & 0xf0) === 0x90)
            this.release(`midi${pitch}`);
        };
    };
    access.onstatechange = listen;
    listen();
    return access.inputs.size;
  }
}
