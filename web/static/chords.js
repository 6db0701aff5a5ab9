// The row of chords above the roll: a field for each bar, in which one types what shall be there,
// and sees what is there.
import { byId, make, setHidden } from "./dom.js";
import { isDuet } from "./duet.js";
import { current, edit, on, page, session, startedPiece, tell } from "./page.js";
import { barOf } from "./piece.js";
import { post } from "./server.js";
import { redraw, roll } from "./stage.js";
import { isOn } from "./transport.js";

/**
 * @import { Piece } from "./piece.js"
 * @import { View } from "./view.js"
 */

const row = byId("chords");
let placed = ""; // how the fields lie
/** @type {WeakMap<Piece, string[]>} the chords that pieces are in, bar by bar */
const names = new WeakMap();
/** @type {Piece | null} */
let asked = null;

const chords = () => session.now?.chords ?? [];
const fields = () => /** @type {HTMLInputElement[]} */ ([...row.children]);

/**
 * A field for the chords of a bar; only one of them is in the order of Tab.
 * @param {number} number
 */
function field(number) {
  const input = make("input", { type: "text", maxLength: 512, spellcheck: false });
  input.autocomplete = "off";
  input.tabIndex = number ? -1 : 0;
  input.addEventListener("change", () => put(number, input.value));
  input.addEventListener("focus", () =>
    fields().forEach((its) => (its.tabIndex = -1 + Number(its === input))),
  );
  input.addEventListener("keydown", (event) => {
    const isAtEnd = input.selectionStart === input.value.length;
    const isAtStart = input.selectionEnd === 0;
    const isNext = event.key === "Enter" || (event.key === "ArrowRight" && isAtEnd);
    if (!isNext && !(event.key === "ArrowLeft" && isAtStart)) return;
    event.preventDefault();
    const by = isNext && !event.shiftKey ? 1 : -1;
    if (event.key === "Enter") put(number, input.value);
    const next = fields()[number + by];
    next?.focus();
    next?.select();
  });
  return input;
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
  while (row.children.length > bars.length) row.lastChild?.remove();
  while (row.children.length < bars.length) row.append(field(row.children.length));
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
  if (chords().length) byId("has-chords").setAttribute("aria-pressed", "true"); // they hold
  roll.hasChords = hasBars && isOn("has-chords");
  setHidden(byId("has-chords"), !hasBars);
  setHidden(row, !roll.hasChords);
  fill();
  if (roll.hasChords !== was) redraw();
  if (roll.hasChords) nameAll();
}

roll.onView = place;
on("show", show);
byId("has-chords").addEventListener("click", () => {
  byId("has-chords").setAttribute("aria-pressed", String(!isOn("has-chords")));
  show();
});
if (matchMedia("(pointer: coarse)").matches)
  byId("has-chords").setAttribute("aria-pressed", "false");
