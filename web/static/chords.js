// The row of chords above the roll: a field for each bar, in which one types what shall be there,
// and sees what is there.
import { byId, isOn, make, setHidden, turn } from "./dom.js";
import { isDuet } from "./duet.js";
import { server } from "./connection.js";
import { current, edit, isReady, on, page, request, session, startedPiece, tell } from "./page.js";
import { barOf, lastEnd, where } from "./piece.js";
import { post } from "./server.js";
import { redraw, roll } from "./stage.js";

/**
 * @import { Piece } from "./piece.js"
 * @import { View } from "./view.js"
 */

const row = byId("chords");
const SOON = 250; // milliseconds in a field, after which one is offered something
let placed = ""; // how the fields lie
/** @type {WeakMap<Piece, string[]>} the chords that pieces are in, bar by bar */
const names = new WeakMap();
/** @type {Piece | null} */
let asked = null;

const chords = () => session.now?.chords ?? [];
const fields = () => /** @type {HTMLInputElement[]} */ ([...row.querySelectorAll("input")]);
const offers = make("div", { id: "offers", hidden: true }); // for the bar in whose field one is
let waiting = 0;

/**
 * A field for the chords of a bar; only one of them is in the order of Tab.
 * @param {number} number
 */
function field(number) {
  const input = make("input", { type: "text", maxLength: 512, spellcheck: false });
  input.autocomplete = "off";
  input.tabIndex = number ? -1 : 0;
  input.addEventListener("change", () => put(number, input.value));
  input.addEventListener("focus", () => {
    fields().forEach((its) => (its.tabIndex = -1 + Number(its === input)));
    clearTimeout(waiting);
    offers.hidden = true;
    waiting = setTimeout(() => suggest(number, input), SOON);
  });
  input.addEventListener("keydown", (event) => {
    const isAtEnd = input.selectionStart === input.value.length;
    const isAtStart = input.selectionEnd === 0;
    const isNext = event.key === "Enter" || (event.key === "ArrowRight" && isAtEnd);
    if (!isNext && !(event.key === "ArrowLeft" && isAtStart)) return;
    event.preventDefault();
    const by = isNext && !event.shiftKey ? 1 : -1;
    if (event.key === "Enter") put(number, input.value);
    goTo(number + by);
  });
  return input;
}

/** @param {number} number of a bar */
function goTo(number) {
  const input = fields()[number];
  input?.focus();
  input?.select();
}

/**
 * A request to write a bar, or as far as that; a person's notes in it are kept.
 * @param {number} bar
 */
function upTo(bar) {
  const piece = startedPiece();
  const there = piece.notes.length ? where(piece, lastEnd(piece) - 1).bar + 1 : 0;
  const written = piece.notes.filter((note) => !note[5] && where(piece, note[0]).bar === bar);
  const programs = [...new Set(written.map((note) => note[4]))];
  const isTune = !written.length && (page.plays?.programs.length ?? 0) > 1;
  const how = bar >= there ? "continue" : isTune ? "harmonize" : "rewrite";
  const ask = request(how, { bars: [bar, bar + 1], programs });
  return { ...ask, settings: { ...ask.settings, bars: Math.max(1, bar + 1 - there) } };
}

/**
 * Offers what the model would have in a bar for which nobody has typed anything.
 * @param {number} number
 * @param {HTMLInputElement} input
 */
function suggest(number, input) {
  const isHere = () => !input.value && input === document.activeElement;
  if (!isHere() || !isReady() || page.writing || isDuet()) return;
  server.ask("suggest", { ...upTo(number), bar: number }, ({ suggested }) => {
    if (!suggested || !isHere()) return;
    offers.replaceChildren(
      ...suggested.map((/** @type {string} */ name) => {
        const button = make("button", { type: "button", title: "The model's suggestion" }, name);
        button.addEventListener("click", () => {
          put(number, name);
          goTo(number + 1);
        });
        return button;
      }),
    );
    offers.style.left = `min(${input.style.left}, 100% - 12rem)`;
    input.after(offers);
    offers.hidden = false;
  });
}

/**
 * Puts chords into bars from one on: bar lines part them.
 * @param {number} bar
 * @param {string} text
 */
function put(bar, text) {
  const now = [...chords()];
  const bars = text
    .trim()
    .replace(/^\||\|$/g, "")
    .split("|");
  bars.forEach((part, number) => {
    while (now.length <= bar + number) now.push("");
    now[bar + number] = part.trim();
  });
  while (now.at(-1) === "") now.pop();
  if (now.join("|") === chords().join("|") || !page.plays || page.writing) return fill();
  edit(startedPiece(), "chords", { chords: now });
  tell("asked");
}

/** Asks for the names of the chords that a person has not typed. */
async function nameAll() {
  const piece = current();
  const isQuiet = page.isServed && !page.writing && !isDuet();
  if (!piece?.notes.length || !isQuiet || names.has(piece) || asked === piece) return;
  asked = piece;
  try {
    names.set(piece, await (await post("/chords", JSON.stringify({ piece }))).json());
    fill();
  } catch {
    asked = null; // without names one types all the same
  }
}

/** Shows the chords that there are, and takes no others while the model writes. */
function fill() {
  const all = chords();
  const piece = current();
  const found = (piece && names.get(piece)) ?? [];
  fields().forEach((input, number) => {
    if (document.activeElement !== input || !all[number]) input.value = all[number] ?? "";
    input.readOnly = Boolean(page.writing);
    input.title = found[number] ?? ""; // which may be longer than the bar
    input.placeholder = found[number] ?? (all.length || number ? "" : "e.g. Am");
  });
}

/**
 * Lays the fields over their bars.
 * @param {View} view
 */
function place(view) {
  const { bars } = view.piece;
  const now = JSON.stringify([view.starts, view.perStep, view.numbers]);
  if (now === placed) return;
  placed = now;
  row.style.top = `${view.numbers}px`;
  fields()
    .slice(bars.length)
    .forEach((input) => input.remove());
  for (let number = fields().length; number < bars.length; number++) row.append(field(number));
  fields().forEach((input, bar) => {
    const { number, missing } = barOf(view.piece, bar);
    input.setAttribute("aria-label", `Chords of bar ${number}`);
    input.hidden = missing > 0; // an upbeat has none
    input.style.left = `${view.x(view.starts[bar]) + view.left + 2}px`;
    input.style.width = `${(view.starts[bar + 1] - view.starts[bar]) * view.perStep - 4}px`;
  });
  fill();
}

/** Shows the row, or hides it; music that is counted in seconds has no bars for it. */
function show() {
  const hasBars = page.plays?.grid !== "seconds";
  const was = roll.hasChords;
  if (chords().length) turn("has-chords", true); // they hold
  roll.hasChords = hasBars && isOn("has-chords");
  setHidden(byId("has-chords"), !hasBars);
  setHidden(row, !roll.hasChords);
  fill();
  if (roll.hasChords !== was) redraw();
  if (roll.hasChords) nameAll();
}

row.append(offers);
roll.onView = place;
row.addEventListener("focusout", ({ relatedTarget }) => {
  if (!(relatedTarget instanceof Node && row.contains(relatedTarget))) offers.hidden = true;
});
on("show", show);
byId("has-chords").addEventListener("click", () => {
  turn("has-chords");
  show();
});
if (matchMedia("(pointer: coarse)").matches) turn("has-chords", false);
