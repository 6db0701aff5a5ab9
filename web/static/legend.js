// The legend: whose notes have which color, and which voices are heard.
import { byId, make } from "./dom.js";
import { current, nameOf, on } from "./page.js";
import { DRUMS } from "./piece.js";
import { colorName } from "./roll.js";
import { redraw, roll } from "./stage.js";

/** @type {Set<number>} programs */
const muted = new Set();
/** @type {Set<number>} programs; where there are some, only these are heard */
const alone = new Set();
/** @type {Set<number>} programs that Rewrite leaves as they are */
const locked = new Set();
let shown = "";

/** The programs whose notes are rewritten; null: everybody's. */
export function rewritten() {
  const voices = [...new Set(current()?.notes.map((note) => note[4]))];
  return voices.some((each) => locked.has(each))
    ? voices.filter((each) => !locked.has(each))
    : null;
}

function show() {
  const notes = current()?.notes ?? [];
  const voices = [...new Set(notes.map((note) => note[4]))].sort((a, b) => a - b);
  const silent = voices.filter((each) => (alone.size ? !alone.has(each) : muted.has(each)));
  roll.silent = new Set(silent);
  const hasOwn = notes.some((note) => note[5]);
  const now = JSON.stringify([
    hasOwn,
    voices.map(nameOf),
    silent,
    [...alone],
    [...locked],
    roll.programs,
  ]);
  if (shown === now) return;
  shown = now;
  const active = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.voice;
  byId("legend").replaceChildren(...(hasOwn ? [yours()] : []), ...voices.map(voice));
  if (active)
    /** @type {HTMLElement | null} */ (
      byId("legend").querySelector(`[data-voice="${active}"]`)
    )?.focus();
}

/** @param {string} name of a color */
function spot(name) {
  const spot = make("i");
  spot.style.background = `var(${name})`;
  return spot;
}

const yours = () => make("span", {}, spot("--own"), make("b", {}, "yours"));

/** @param {number} program */
function voice(program) {
  const name = nameOf(program);
  const mute = toggle(muted, program, `Mute ${name}`);
  const mark = spot(colorName(roll.programs, program));
  mark.classList.toggle("drums", program === DRUMS);
  mute.append(mark, make("b", {}, name));
  const solo = toggle(alone, program, `Only ${name}`);
  solo.append("S");
  solo.title = `Only ${name}`;
  const lock = toggle(locked, program, `Keep ${name}`);
  lock.append("K");
  lock.title = `Keep ${name} when bars are rewritten`;
  const entry = make("span", { className: "voice" }, mute, solo, lock);
  entry.classList.toggle("silent", roll.silent.has(program));
  return entry;
}

/**
 * A button that puts a program into a set, or takes it out.
 * @param {Set<number>} set
 * @param {number} program
 * @param {string} label
 */
function toggle(set, program, label) {
  const button = make("button", { type: "button" });
  button.dataset.voice = label;
  button.setAttribute("aria-label", label);
  button.setAttribute("aria-pressed", String(set.has(program)));
  button.addEventListener("click", () => {
    if (!set.delete(program)) set.add(program);
    show();
    redraw();
  });
  return button;
}

on("show", show);
on("draw", show);
