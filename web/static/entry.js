// Notes in: by keys, as text, as a file, as an example.
import { all, byId, field, make, reason, say, setHidden } from "./dom.js";
import { change, isWriting, model, newTune, on, ownNote, ownVoice, page } from "./page.js";
import { session, settings, sound, soundOf, startedPiece, tell } from "./page.js";
import * as duet from "./duet.js";
import { added } from "./edit.js";
import { act } from "./editor.js";
import { Piano } from "./piano.js";
import { DRUMS, counted, keyOf, lastEnd } from "./piece.js";
import { isCompiling } from "./models.js";
import { recorder, toggleRecord } from "./recording.js";
import { post } from "./server.js";
import { server } from "./connection.js";
import { roll } from "./stage.js";
import { write } from "./writing.js";

/**
 * @import { Piece } from "./piece.js"
 * @import { Told } from "./server.js"
 */

const EXAMPLES = [
  ["Twinkle, twinkle", "C5 C5 G5 G5 A5 A5 G5:2 F5:1 F5 E5 E5 D5 D5 C5:2"],
  ["Ode to Joy", "E5 E5 F5 G5 G5 F5 E5 D5 C5 C5 D5 E5 E5:1.5 D5:.5 D5:2"],
  ["Four notes", "C5 E5 G5 C6"],
  ["A minor tune", "A4:1.5 B4:.5 C5 E5 D5:1.5 C5:.5 B4:2 C5 A4 B4 G#4 A4:4"],
  ["Chords", "Am:2 F C G7 Am:4"],
  ["Two voices", "C5:2 B4:1 C5 D5:2 E5 / C4:2 G3 B3 C4"],
];

export const piano = new Piano(byId("piano"), press, release);
/** @type {Map<number, () => void>} what ends the sound of each pitch that is held */
const sounding = new Map();
const stepped = { held: 0, onset: 0, rest: 0 }; // the chord that is being put in

const mode = () => [...all("[name=mode]")].find((radio) => radio.checked)?.value;
const stepOfLength = (/** @type {Piece} */ piece) =>
  Math.max(1, Math.round(Number(field("length").value) * piece.steps));

/**
 * @param {number} pitch
 * @param {number} velocity 0: nothing tells how loud
 * @param {number} ago seconds
 */
function press(pitch, velocity, ago) {
  sound.wake();
  sounding.get(pitch)?.();
  if (page.plays) sounding.set(pitch, sound.note(ownVoice(), pitch, velocity || 90));
  if (mode() === "record") recorder.press(pitch, velocity, ago);
  if (mode() === "duet") duet.press(pitch, velocity, ago);
  if (mode() !== "step" || !page.plays || isWriting()) return;
  const piece = startedPiece();
  if (stepped.held === 0) stepped.onset = Math.max(lastEnd(piece), stepped.rest);
  stepped.held += 1;
  stepped.rest = 0;
  page.cursor = 0;
  const note = ownNote([stepped.onset, stepOfLength(piece), pitch, velocity]);
  change(added(piece, [note]).piece, soundOf(pitch, note[4]));
  roll.keepInView(stepped.onset);
}

/**
 * @param {number} pitch
 * @param {number} ago seconds
 */
function release(pitch, ago) {
  sounding.get(pitch)?.();
  sounding.delete(pitch);
  stepped.held = Math.max(0, stepped.held - 1);
  if (mode() === "record") recorder.release(pitch, ago);
  duet.release(pitch, ago);
}

function rest() {
  const piece = startedPiece();
  stepped.rest = Math.max(lastEnd(piece), stepped.rest) + stepOfLength(piece);
  say("A rest.");
}

/** Begins the keys where the drums are, if these are chosen. */
const fitPiano = () => piano.fit(field("voice").value === String(DRUMS));

/** Deletes one's own last note, or all that one put in with it. */
function deleteLast() {
  const own = session.now?.piece.notes.filter((note) => note[5]) ?? [];
  const last = own.filter((note) => note[0] === own.at(-1)?.[0]);
  if (!last.length) return say("None of these notes is yours.");
  roll.chosen = new Set(last.map(keyOf));
  if (act("delete")) roll.keepInView(last[0][0]);
}

// --- all at once

/**
 * @param {string} text
 * @param {() => void} then
 */
function read(text, then = () => {}) {
  field("text").value = text;
  server.ask("text", { model: model(), text, settings: settings.get() }, (told) => {
    if (told.error) return say(told.error, true);
    taken(told, "text");
    then();
  });
}

/** A first click: a tune that waits there, in all voices that the model has. */
function hearOne() {
  const hasOneVoice = page.plays && page.plays.programs.length < 2;
  read(EXAMPLES[0][1], () => write(hasOneVoice ? "continue" : "harmonize"));
}

/**
 * @param {Told} told
 * @param {string} label
 */
function taken(told, label) {
  tell("settle");
  page.cursor = 0;
  roll.selection = null;
  // chords that wait for a tune are its own
  const chords = session.now?.piece.notes.length ? [] : session.now?.chords;
  change(told.read, label, { before: null, tune: newTune(), ...(chords && { chords }) });
  roll.center();
  const found = told.found ?? counted(told.read.notes.length, "note");
  say([found, ...told.changes].join("; ") + ".");
}

/** @param {File | undefined} file */
async function openFile(file) {
  if (!file) return;
  const name = file.name.slice(0, 60);
  if (!isCompiling()) say(`Reading ${name} …`);
  try {
    const response = await post(`/upload?model=${encodeURIComponent(model())}`, file);
    taken(await response.json(), name);
  } catch (error) {
    say(`${name}: ${reason(error)}`, true);
  }
}

// --- wires

on("show", fitPiano);
field("voice").addEventListener("change", fitPiano);
on("settle", () => {
  stepped.rest = 0;
  if (recorder.isOn && !duet.isDuet()) toggleRecord();
});
for (const [name, text] of EXAMPLES) {
  const button = make("button", { type: "button", textContent: name });
  button.addEventListener("click", () => read(text));
  byId("examples").append(button);
}
byId("text-form").addEventListener("submit", (event) => {
  event.preventDefault();
  read(field("text").value);
});
field("file").addEventListener("change", () => {
  openFile(field("file").files?.[0]);
  field("file").value = "";
});
byId("hear-one").addEventListener("click", hearOne);
byId("lower").addEventListener("click", () => piano.scroll(-1));
byId("higher").addEventListener("click", () => piano.scroll(1));
byId("rest").addEventListener("click", rest);
byId("delete-last").addEventListener("click", deleteLast);
for (const radio of all("[name=mode]"))
  radio.addEventListener("change", () => {
    if (recorder.isOn || duet.isDuet()) tell("settle");
    for (const mode of ["step", "record", "duet"])
      setHidden(byId(`${mode}-tools`), radio.value !== mode);
  });
for (const kind of /** @type {const} */ (["dragover", "dragleave", "drop"]))
  addEventListener(kind, (event) => {
    event.preventDefault();
    byId("roll-frame").classList.toggle("drop", kind === "dragover");
    if (kind === "drop") openFile(event.dataTransfer?.files[0]);
  });
