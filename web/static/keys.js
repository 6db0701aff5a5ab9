// Keys and buttons that are there wherever the focus is: play, undo, redo, new.
import { byId, field, say } from "./dom.js";
import { act } from "./editor.js";
import { isDuet, toggleDuet } from "./duet.js";
import { change, current, freshPiece, newTune, page, session, tell } from "./page.js";
import { isTyping } from "./piano.js";
import { lastEnd } from "./piece.js";
import { recorder, toggleRecord } from "./recording.js";
import { roll } from "./stage.js";
import { togglePlay } from "./transport.js";

// A control to which one went with Tab keeps its own space, but for the keys of the piano, which
// Enter plays.
let isByTab = false;
addEventListener("pointerdown", () => (isByTab = false), true);
addEventListener("keydown", (event) => (isByTab ||= event.key === "Tab"), true);

// a list in which one has chosen with the mouse would take the letters that play, and the space
addEventListener("change", ({ target }) => {
  if (!isByTab && target instanceof HTMLSelectElement) target.blur();
});

// letters play the piano, but for those who came to the roll with Tab and go through it by keys
addEventListener(
  "keydown",
  (event) => {
    const isLetter = /^[a-z]$/i.test(event.key) && !event.ctrlKey && !event.metaKey;
    if (isByTab && isLetter && event.target === byId("roll")) event.stopImmediatePropagation();
  },
  true,
);

const EDITS = { c: "copy", x: "cut", v: "paste", a: "all" };

/**
 * What keys edit wherever the focus is, but where one types; text that is selected is copied as ever.
 * @param {KeyboardEvent} event
 */
function editOf(event) {
  if (isTyping(event.target) || event.altKey) return null;
  if (event.key === "Delete" || event.key === "Backspace") return "delete";
  const isCommand = (event.ctrlKey || event.metaKey) && !getSelection()?.toString();
  return isCommand ? (EDITS[/** @type {"c"} */ (event.key.toLowerCase())] ?? null) : null;
}

addEventListener("keydown", (event) => {
  const edit = editOf(event);
  if (edit && act(edit)) event.preventDefault();
});

/** @param {KeyboardEvent} event */
function isForPage(event) {
  const { target } = event;
  if (isTyping(target)) return false;
  if (event.key === " ") {
    const isControl =
      target instanceof Element && target.matches("button:not(.key), input, summary, a");
    return !isByTab || !isControl;
  }
  return (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z";
}

addEventListener("keydown", (event) => {
  if (!isForPage(event)) return;
  event.preventDefault();
  if (event.key !== " ") field(event.shiftKey ? "redo" : "undo").click();
  else if (event.repeat) return;
  else if (isDuet()) toggleDuet();
  else if (recorder.isOn) toggleRecord();
  else togglePlay();
});
addEventListener("keyup", (event) => {
  if (event.key === " " && isForPage(event)) event.preventDefault(); // no click of the button
});

/**
 * @param {() => void} move
 * @param {string} word
 */
function go(move, word) {
  tell("settle");
  move();
  page.cursor = Math.min(page.cursor, lastEnd(current() ?? freshPiece()));
  tell("show");
  tell("asked"); // what could not be may be now
  say(word);
}

byId("undo").addEventListener("click", () => go(() => session.undo(), "Undone."));
byId("redo").addEventListener("click", () => go(() => session.redo(), "Redone."));
byId("clear").addEventListener("click", () => {
  if (!page.plays) return;
  tell("settle");
  page.cursor = 0;
  roll.selection = null;
  change(freshPiece(), "new", { before: null, tune: newTune(), chords: [] });
  tell("asked");
  say("An empty page. Undo brings the music back.");
});
