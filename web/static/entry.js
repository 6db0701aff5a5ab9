// Notes in: by keys step by step or in time, as text, as a file, as an example.
import { all, byId, field, make, reason, say, setHidden } from "./dom.js";
import {
  change,
  current,
  model,
  newTune,
  on,
  ownNote,
  ownVoice,
  page,
  session,
  settings,
  sound,
  startedPiece,
  tell,
} from "./page.js";
import { added } from "./edit.js";
import { Piano } from "./piano.js";
import { barStarts, clockOf, lastEnd, noteName, withNotes, withRoom } from "./piece.js";
import { Recorder } from "./record.js";
import { post } from "./server.js";
import { server } from "./connection.js";
import { redraw, roll } from "./stage.js";
import { playInstead, player, showAt } from "./transport.js";
import { write } from "./writing.js";

/**
 * @import { Piece } from "./piece.js"
 * @import { Played, Recording } from "./record.js"
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

const piano = new Piano(byId("piano"), press, release);
const recorder = new Recorder(sound, addRecorded);
/** @type {Map<number, () => void>} what ends the sound of each pitch that is held */
const sounding = new Map();
const stepped = { held: 0, onset: 0, rest: 0 }; // the chord that is being put in

export const isRecording = () => recorder.isOn;

/**
 * @param {Played[]} notes
 * @param {string} label
 */
function addNotes(notes, label) {
  const last = notes.at(-1);
  if (!page.plays || !last) return;
  page.cursor = 0;
  change(added(startedPiece(), notes.map(ownNote)).piece, label);
  roll.keepInView(last[0]);
}

const mode = () => [...all("[name=mode]")].find((radio) => radio.checked)?.value;
const stepOfLength = (/** @type {Piece} */ piece) =>
  Math.max(1, Math.round(Number(field("length").value) * piece.steps));

/** @param {number} pitch */
function press(pitch) {
  sound.wake();
  sounding.get(pitch)?.();
  if (page.plays) sounding.set(pitch, sound.note(ownVoice(), pitch, 90));
  if (mode() === "record") recorder.press(pitch);
  if (mode() !== "step" || !page.plays || page.writing) return;
  const piece = startedPiece();
  if (stepped.held === 0) stepped.onset = Math.max(lastEnd(piece), stepped.rest);
  stepped.held += 1;
  stepped.rest = 0;
  addNotes([[stepped.onset, stepOfLength(piece), pitch]], noteName(pitch));
}

/** @param {number} pitch */
function release(pitch) {
  sounding.get(pitch)?.();
  sounding.delete(pitch);
  stepped.held = Math.max(0, stepped.held - 1);
  recorder.release(pitch);
}

function rest() {
  const piece = startedPiece();
  stepped.rest = Math.max(lastEnd(piece), stepped.rest) + stepOfLength(piece);
  say("A rest.");
}

function deleteLast() {
  const piece = session.now?.piece;
  const last = piece?.notes.at(-1);
  if (!piece || !last || page.writing) return;
  change({ ...piece, notes: piece.notes.filter((note) => note[0] < last[0]) }, "deleted");
}

// --- in time

/**
 * The bar that one records from: that of the cursor, or the first after all notes.
 * @param {Piece} piece
 */
function recordedBar(piece) {
  const starts = barStarts(piece);
  const end = lastEnd(piece);
  if (page.cursor < end) return starts.findLastIndex((start) => start <= page.cursor);
  const free = starts.findIndex((start) => start >= end);
  return free < 0 ? piece.bars.length : free;
}

/** The piece that one plays to, without an end. */
function playedTo() {
  const { recording } = recorder;
  if (!recording) return null;
  const { piece, clock } = recording;
  const rest = { loop: null, beats: [], silent: roll.silent }; // the recorder clicks
  return { piece, clock, isComplete: false, frontier: Infinity, ...rest };
}

/** Shows what there is with what is being recorded, up to the bar that it is in. */
function drawRecorded() {
  const { recording } = recorder;
  if (!recording) return;
  const piece = withRoom(recording.piece, recorder.stepOf(recording) + 1);
  redraw(withNotes(piece, [...piece.notes, ...recorder.played(recording).map(ownNote)]));
}

/**
 * @param {Played[]} notes
 * @param {Recording} recording
 */
function addRecorded(notes, recording) {
  player.stop();
  const before = lastEnd(recording.piece);
  addNotes(notes, "recording");
  const piece = current();
  if (notes.length && piece) {
    // what goes on after the end is gone on with; what was played over the music is listened to
    const isOver = lastEnd(piece) <= before;
    page.cursor = isOver ? recording.at : lastEnd(piece);
    say(`Recorded ${notes.length} notes. Undo takes them away.`);
  } else {
    redraw();
    say("Nothing was played.");
  }
  showAt(page.cursor);
}

export function toggleRecord() {
  if (recorder.isOn) recorder.stop();
  else if (page.plays && !page.writing) {
    player.stop();
    const piece = startedPiece();
    const from = { piece, clock: clockOf(piece), bar: recordedBar(piece) };
    const { at, begin } = recorder.start(from, () =>
      say("Recording. Press Stop when you are done."),
    );
    player.play(at, begin);
    say("One bar of clicks, then play.");
  }
  byId("record").textContent = recorder.isOn ? "Stop" : "Record";
  byId("record").setAttribute("aria-pressed", String(recorder.isOn));
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
  change(told.read, label, { before: null, tune: newTune() });
  roll.center();
  const found = told.found ?? `${told.read.notes.length} notes`;
  say([found, ...told.changes].join("; ") + ".");
}

/** @param {File | undefined} file */
async function openFile(file) {
  if (!file) return;
  const name = file.name.slice(0, 60);
  try {
    const response = await post(`/upload?model=${encodeURIComponent(model())}`, file);
    taken(await response.json(), name);
  } catch (error) {
    say(`${name}: ${reason(error)}`, true);
  }
}

// --- wires

playInstead(playedTo);
setInterval(drawRecorded, 50);
on("settle", () => {
  if (recorder.isOn) toggleRecord();
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
byId("record").addEventListener("click", toggleRecord);
byId("rest").addEventListener("click", rest);
byId("delete-last").addEventListener("click", deleteLast);
for (const radio of all("[name=mode]"))
  radio.addEventListener("change", () => {
    if (recorder.isOn) toggleRecord();
    setHidden(byId("step-tools"), radio.value !== "step");
    setHidden(byId("record-tools"), radio.value !== "record");
  });
for (const kind of /** @type {const} */ (["dragover", "dragleave", "drop"]))
  addEventListener(kind, (event) => {
    event.preventDefault();
    byId("roll-frame").classList.toggle("drop", kind === "dragover");
    if (kind === "drop") openFile(event.dataTransfer?.files[0]);
  });

if ("requestMIDIAccess" in navigator) {
  byId("midi-in").hidden = false;
  byId("midi-in").addEventListener("click", async () => {
    try {
      const count = await piano.connectMidi();
      say(
        count
          ? `${count} MIDI keyboard${count > 1 ? "s" : ""} connected.`
          : "No MIDI keyboard is plugged in; one that comes later is heard.",
      );
    } catch {
      say("The browser does not let this page hear MIDI keyboards.", true);
    }
  });
}
