// The page: what a person does, what the server tells, and what is shown.
import { keep, kept } from "./keep.js";
import { Piano, isTyping } from "./piano.js";
import {
  barStarts,
  clockOf,
  emptyPiece,
  keyOf,
  lastEnd,
  noteName,
  where,
  withBars,
  withNotes,
  withRoom,
} from "./piece.js";
import { Recorder } from "./record.js";
import { Roll, drawSmall } from "./roll.js";
import { Server, post } from "./server.js";
import { KEPT, LINK, Session, VARIATIONS, said, textOf } from "./session.js";
import { Settings } from "./settings.js";
import { Player, Sound } from "./sound.js";
import { showWhy } from "./why.js";

const EXAMPLES = [
  ["Twinkle, twinkle", "C5 C5 G5 G5 A5 A5 G5:2 F5:1 F5 E5 E5 D5 D5 C5:2"],
  ["Ode to Joy", "E5 E5 F5 G5 G5 F5 E5 D5 C5 C5 D5 E5 E5:1.5 D5:.5 D5:2"],
  ["Four notes", "C5 E5 G5 C6"],
  ["A minor tune", "A4:1.5 B4:.5 C5 E5 D5:1.5 C5:.5 B4:2 C5 A4 B4 G#4 A4:4"],
  ["Chords", "Am:2 F C G7 Am:4"],
  ["Two voices", "C5:2 B4:1 C5 D5:2 E5 / C4:2 G3 B3 C4"],
];
const DRUMS = 128;
const [SLOWEST, FASTEST] = [16, 300]; // tempi that a piece can have
const byId = (id) => document.getElementById(id);

if (location.search) history.replaceState(null, "", location.pathname + location.hash); // the token, which is a cookie now
const session = new Session();
const sound = new Sound();
const settings = new Settings(() => {
  keepSoon();
  soon(check);
}, retime);
const roll = new Roll(byId("roll"), [], byId("cursor"));
const piano = new Piano(byId("piano"), press, release);
const recorder = new Recorder(sound, addRecorded);
const player = new Player(sound, heard, onStep);
const server = new Server((isThere) => {
  const isBack = isThere && !byId("gone").hidden;
  byId("gone").hidden = isThere;
  if (isBack) say("The server is back.");
  if (isThere) listModels();
  else writing = null;
  enable();
});
let plays = null; // what the model that is chosen plays
let writing = null; // what is being written: { base, rows, row, message, opens }
let cursor = 0; // the step from which "play" plays
let stepped = { held: 0, onset: 0 }; // the chord that is being put in
let timer = 0;
let focus = -1; // the note that the arrow keys are at
let seed = Math.floor(Math.random() * 2 ** 31);

// --- what there is

function current() {
  if (!writing) return session.now?.piece ?? null;
  const row = writing.rows[writing.row];
  if (writing.shown?.count !== row.length || writing.shown.row !== writing.row) {
    writing.shown = {
      count: row.length,
      row: writing.row,
      piece: withNotes(writing.base, [...writing.base.notes, ...row]),
    };
  }
  return writing.shown.piece;
}

// What is played along: what there is; while one records, without the notes that are played to it.
function heard() {
  if (recorder.isOn)
    return {
      piece: recorder.piece,
      clock: recorder.clock,
      isComplete: false,
      frontier: Infinity,
    };
  const piece = current() ?? freshPiece();
  const row = writing?.rows[writing.row];
  if (heard.piece !== piece) Object.assign(heard, { piece, clock: clockOf(piece) });
  return {
    piece,
    clock: heard.clock,
    isComplete: !writing,
    frontier: row?.length ? row.at(-1)[0] : (writing?.opens ?? 0),
  };
}

const nameOf = (program) =>
  plays?.programs.find(([its]) => its === program)?.[1] ?? `program ${program}`;
const ownVoice = () => Number(byId("voice").value);
const say = (text, isBad = false) => {
  byId("status").textContent = text;
  byId("status").classList.toggle("bad", isBad);
};
const setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
}; // what is new is laid out
const soon = (act) => {
  clearTimeout(timer);
  timer = setTimeout(act, 250);
};

function change(piece, label, more = {}) {
  session.push({
    piece,
    label,
    written: null,
    before: session.at >= 0 ? session.at : null,
    variations: null,
    chosen: 0,
    ...more,
  });
  show();
}

function show() {
  const piece = current();
  focus = -1;
  server.forget("explain"); // of what is no longer shown
  Object.assign(roll, { focus: null, looks: null });
  byId("why").hidden = true;
  if (!player.isPlaying) roll.cursor = cursor || null;
  if (!writing)
    roll.selection =
      roll.selection && piece && roll.selection[1] <= piece.bars.length ? roll.selection : null;
  redraw();
  enable();
  legend();
  cards();
  engraveSoon();
  if (session.now !== keepSoon.state) keepSoon();
}

function redraw() {
  const piece = recorder.isOn ? withRecorded() : current();
  byId("roll-empty").hidden = Boolean(piece?.notes.length);
  if (piece) roll.show(piece);
}

// What there is with what is being recorded, up to the bar that it is in.
function withRecorded() {
  const added = recorder.played().map(ownNote);
  const piece = withRoom(recorder.piece, recorder.step + 1);
  return withNotes(piece, [...piece.notes, ...added]);
}

// Draws what is being written, a few times a second: drawing must not hold up who writes, on one core.
function drawSoon() {
  drawSoon.timer ??= setTimeout(() => {
    drawSoon.timer = null;
    if (!writing) return;
    redraw();
    if (performance.now() - (drawSoon.last ?? 0) < 400) return;
    drawSoon.last = performance.now();
    legend();
    cards();
  }, 80);
}

function enable() {
  const isReady = Boolean(plays) && byId("gone").hidden,
    has = Boolean(current()?.notes.length),
    hasOneVoice = plays?.programs.filter(([program]) => program !== DRUMS).length === 1;
  for (const button of document.querySelectorAll("[data-how]")) {
    const how = button.dataset.how;
    button.disabled =
      !isReady ||
      Boolean(writing) ||
      (!has && how !== "continue") ||
      (hasOneVoice && (how === "harmonize" || how === "accompany")) ||
      (how === "rewrite" && !roll.selection);
  }
  const hints = [];
  if (hasOneVoice) hints.push("This model plays one voice: it adds none to yours.");
  if (!has) hints.push("Without notes, the model begins by itself.");
  else if (roll.selection) hints.push(`${describeBars(roll.selection)} selected.`);
  else hints.push("To rewrite, drag over bars, or tap the first and the last number.");
  byId("about-action").textContent = writing ? "" : hints.join(" ");
  byId("stop-writing").hidden = !writing;
  byId("undo").disabled = !session.canUndo;
  byId("redo").disabled = !session.canRedo;
  for (const button of byId("take").querySelectorAll("button"))
    button.disabled = !has || (button.dataset.file ? !byId("gone").hidden : Boolean(writing));
}

function describeBars([first, end]) {
  const numbers = [first, end - 1].map((bar) => where(current(), barStarts(current())[bar]).number);
  return numbers[0] === numbers[1] ? `Bar ${numbers[0]}` : `Bars ${numbers[0]} to ${numbers[1]}`;
}

function legend() {
  const piece = current();
  const entries = piece?.notes.some((note) => note[5]) ? [["yours", "--own"]] : [];
  const written = new Set((piece?.notes ?? []).filter((note) => !note[5]).map((note) => note[4]));
  for (const program of [...written].sort((a, b) => a - b)) {
    entries.push([nameOf(program), `--v${Math.max(0, roll.programs.indexOf(program)) % 6}`]);
  }
  if (legend.shown === String(entries)) return;
  legend.shown = String(entries);
  byId("legend").replaceChildren(
    ...entries.map(([text, name]) => {
      const item = document.createElement("span"),
        spot = document.createElement("i");
      spot.style.background = `var(${name})`;
      item.append(spot, text);
      return item;
    }),
  );
}

// --- notes in

function freshPiece() {
  const { meter, tempo } = settings.get();
  return emptyPiece(plays, meter ?? [4, 4], tempo ?? plays.tempo);
}

const startedPiece = () => (session.now?.piece.notes.length ? session.now.piece : freshPiece());

const ownNote = ([onset, duration, pitch]) => [
  onset,
  duration,
  pitch,
  plays.velocity,
  ownVoice(),
  1,
];

function addNotes(notes, label) {
  if (!plays || !notes.length) return;
  const piece = startedPiece();
  const added = notes.map(ownNote);
  const there = new Set(added.map(keyOf));
  cursor = 0;
  change(
    withNotes(piece, [...piece.notes.filter((note) => !there.has(keyOf(note))), ...added]),
    label,
  );
  roll.keepInView(notes.at(-1)[0]);
}

// Plays what there is, and what is written from now on, at the tempo that was chosen.
function retime() {
  const { tempo } = settings.get(),
    now = session.now;
  if (writing || recorder.isOn || !now?.piece.notes.length || plays.grid === "seconds") return;
  if (!(tempo >= SLOWEST && tempo <= FASTEST)) return; // it is said beside the control
  if (now.piece.tempo.every(([bpm]) => bpm === Math.round(tempo))) return;
  const retimed = (piece) => ({ ...piece, tempo: piece.tempo.map(() => [Math.round(tempo)]) });
  const asked = (written) => ({
    ...written,
    piece: retimed(written.piece),
    settings: { ...written.settings, tempo },
    ...(written.written && { written: asked(written.written) }),
  });
  const at = player.isPlaying ? Math.floor(onStep.last) : null;
  const variations = now.variations?.map(retimed) ?? null;
  const { before, chosen, written } = now;
  change(variations?.[chosen] ?? retimed(now.piece), "tempo", {
    ...{ before, chosen, variations },
    written: written && asked(written),
  });
  if (at !== null) player.play(at);
}

function press(pitch) {
  sound.wake();
  press.ends ??= new Map();
  press.ends.get(pitch)?.();
  if (plays) press.ends.set(pitch, sound.note(ownVoice(), pitch, 90));
  const mode = document.querySelector("[name=mode]:checked").value;
  if (mode === "record") recorder.press(pitch);
  if (mode !== "step" || !plays || writing) return;
  const piece = startedPiece(),
    duration = Math.max(1, Math.round(Number(byId("length").value) * piece.steps));
  if (stepped.held === 0) stepped.onset = Math.max(lastEnd(piece), stepped.rest ?? 0);
  stepped.held += 1;
  stepped.rest = 0;
  addNotes([[stepped.onset, duration, pitch]], noteName(pitch));
}

function release(pitch) {
  press.ends?.get(pitch)?.();
  press.ends?.delete(pitch);
  stepped.held = Math.max(0, stepped.held - 1);
  recorder.release(pitch);
}

// The bar that one records from: that of the cursor, or the first after all notes.
function recordedBar(piece) {
  const starts = barStarts(piece),
    end = lastEnd(piece);
  if (cursor < end) return starts.findLastIndex((start) => start <= cursor);
  const free = starts.findIndex((start) => start >= end);
  return free < 0 ? piece.bars.length : free;
}

function addRecorded(notes) {
  player.stop();
  const before = lastEnd(recorder.piece);
  addNotes(notes, "recording");
  const piece = current();
  if (notes.length) {
    // what goes on after the end is gone on with; what was played over the music is listened to
    const isOver = lastEnd(piece) <= before;
    cursor = isOver ? recorder.at : lastEnd(piece);
    say(`Recorded ${notes.length} notes. Undo takes them away.`);
  } else {
    redraw();
    say("Nothing was played.");
  }
  onStepAt(cursor);
}

function toggleRecord() {
  if (recorder.isOn) recorder.stop();
  else if (plays && !writing) {
    player.stop();
    const piece = startedPiece(),
      bar = recordedBar(piece);
    const begin = recorder.start({ piece, clock: clockOf(piece), bar }, () =>
      say("Recording. Press Stop when you are done."),
    );
    player.play(recorder.at, begin);
    say("One bar of clicks, then play.");
  }
  byId("record").textContent = recorder.isOn ? "Stop" : "Record";
  byId("record").setAttribute("aria-pressed", recorder.isOn);
}

// Ends what goes on: nothing of it is lost.
function settle() {
  if (recorder.isOn) toggleRecord();
  stopWriting();
  player.stop();
}

function read(text) {
  server.ask("text", { model: byId("model").value, text, settings: settings.get() }, (told) => {
    if (told.error) return say(told.error, true);
    taken(told, "text");
  });
}

function taken(told, label) {
  settle();
  cursor = 0;
  roll.selection = null;
  change(told.read, label, { before: null });
  const found = told.found ?? `${told.read.notes.length} notes`;
  say([found, ...told.changes].join("; ") + ".");
}

async function openFile(file) {
  if (!file) return;
  try {
    const response = await post(`/upload?model=${encodeURIComponent(byId("model").value)}`, file);
    taken(await response.json(), file.name.slice(0, 60));
  } catch (error) {
    say(`${file.name.slice(0, 60)}: ${error.message}`, true);
  }
}

// --- writing

function request(how, more = {}) {
  const piece = startedPiece(),
    asked = settings.get();
  const hasAnyTempo = plays.has_one_tempo && plays.grid === "beats"; // of its own it has one
  if (hasAnyTempo && piece.grid === "beats") asked.tempo ??= piece.tempo[0][0];
  return {
    model: byId("model").value,
    how,
    piece,
    settings: asked,
    variations: VARIATIONS,
    random_seed: seed,
    ...more,
  };
}

function write(how, more = {}) {
  if (!plays || writing) return;
  settle();
  seed = (seed + 1) % 2 ** 31;
  sound.wake();
  if (how === "rewrite") more = { bars: roll.selection, ...more };
  const message = request(how, more),
    clicked = performance.now();
  settings.complain(null, "");
  say("Writing …");
  server.ask("write", message, (told) => {
    if (told.error) return failed(told);
    if (told.begun) begin(told, message, clicked);
    if (told.notes) hear(told.notes);
    if (told.done) finish(told.done);
  });
}

function begin(told, message, clicked) {
  const own = new Map(message.piece.notes.map((note) => [keyOf(note), note[5]]));
  const goesOn = message.how === "continue" || message.how === "accompany";
  const base = {
    ...withBars(told.begun, goesOn ? message.settings.bars : 0),
    notes: told.begun.notes.map((note) => [...note.slice(0, 5), own.get(keyOf(note)) ?? 1]),
  };
  writing = {
    base,
    message,
    clicked,
    own,
    rows: Array.from({ length: message.variations }, () => []),
    row: 0,
    opens: told.opens,
    changes: told.changes,
  };
  tellSteps(told.trained);
  const starts = barStarts(base);
  cursor = starts.findLast((start) => start <= told.opens) ?? 0;
  if (goesOn) cursor = message.how === "accompany" ? 0 : told.opens;
  show();
  player.play(cursor);
}

function hear(notes) {
  for (const [row, onset, duration, pitch, velocity, program] of notes)
    writing.rows[row].push([onset, duration, pitch, velocity, program, 0]);
  writing.first ??= performance.now() - writing.clicked;
  drawSoon();
}

function finish(pieces) {
  const { message, own, base, row, changes, first } = writing;
  const marked = new Map(base.notes.map((note) => [keyOf(note), note[5]]));
  const variations = pieces.map((piece) => ({
    ...piece,
    notes: piece.notes.map((note) => [
      ...note.slice(0, 5),
      note[5] ? (marked.get(keyOf(note)) ?? own.get(keyOf(note)) ?? 1) : 0,
    ]),
  }));
  writing = null;
  page.firstNoteMilliseconds = first;
  change(variations[row], message.how, { written: message, variations, chosen: row });
  const wrote =
    variations.length === 1 ? "Wrote one piece" : `Wrote ${variations.length} variations`;
  say([wrote, ...changes, ...rewrittenOwn(message, base)].join("; ") + ".");
}

// Says how many of a person's own notes stood in the bars that were rewritten.
function rewrittenOwn(message, base) {
  const count = (piece) => piece.notes.filter((note) => note[5]).length;
  const gone = message.how === "rewrite" ? count(message.piece) - count(base) : 0;
  return gone > 0 ? [`${gone} of your notes were in these bars: Undo brings them back`] : [];
}

function failed(told) {
  const wasWriting = writing;
  writing = null;
  if (wasWriting) player.stop();
  const isSaid = settings.complain(told.control ?? null, told.error);
  say(told.error + (isSaid ? " (see below)" : ""), true);
  show();
}

function stopWriting() {
  if (!writing) return;
  server.stop();
  const { base, rows, message } = writing;
  player.stop();
  writing = null;
  const variations = rows.map((row) => withNotes(base, [...base.notes, ...row]));
  if (rows.some((row) => row.length))
    change(variations[0], message.how, { written: message, variations, chosen: 0 });
  else show();
  say("Stopped.");
}

function check() {
  if (!plays || writing || !byId("gone").hidden) return;
  server.ask("check", request("continue", { variations: 1 }), (told) => {
    settings.complain(told.control ?? null, told.error ?? "");
    if (!told.error && byId("status").classList.contains("bad")) say("");
    if (told.error && !told.control) say(told.error, true);
  });
}

function cards() {
  const area = byId("variations"),
    rows = writing ? writing.rows : session.now?.variations;
  byId("variations-section").hidden = !rows || rows.length < 2;
  if (!rows || rows.length < 2) return;
  const chosen = writing ? writing.row : session.now.chosen;
  while (area.children.length < rows.length) {
    const button = document.createElement("button"),
      canvas = document.createElement("canvas"),
      name = document.createElement("b"),
      about = document.createElement("small");
    const number = area.children.length;
    button.type = "button";
    button.className = "variation";
    name.textContent = `Variation ${number + 1}`;
    canvas.setAttribute("aria-hidden", "true");
    button.append(canvas, name, " ", about);
    button.addEventListener("click", () => choose(number));
    area.append(button);
  }
  while (area.children.length > rows.length) area.lastChild.remove();
  rows.forEach((row, number) => {
    const button = area.children[number],
      piece = writing ? withNotes(writing.base, [...writing.base.notes, ...row]) : row;
    button.setAttribute("aria-pressed", number === chosen);
    drawSmall(button.querySelector("canvas"), piece, roll.programs);
    setText(button.querySelector("small"), `${piece.notes.length} notes`);
  });
}

function choose(number) {
  if (writing) {
    writing.row = number;
    player.play(cursor);
    show();
    return;
  }
  const { variations, written, before, label, chosen } = session.now;
  if (number !== chosen)
    change(variations[number], label, { variations, written, before, chosen: number });
  player.play(cursor);
  say(`Variation ${number + 1} is kept.`);
}

// --- why a note

const numberIn = (piece, note) => piece.notes.findIndex((its) => keyOf(its) === keyOf(note));

function explain(note) {
  const piece = current();
  if (writing || !note || !plays) return;
  const { piece: at, written } = note[5]
    ? { piece, written: null }
    : session.origin((its) => numberIn(its, note) >= 0);
  roll.focus = note;
  roll.looks = null;
  redraw();
  sound.note(note[4], note[2], note[3], undefined, 0.6);
  const question = { model: byId("model").value, piece: at, note: numberIn(at, note), written };
  server.ask("explain", question, (told) => {
    if (told.error) return say(told.error, true);
    if (told.explained === undefined) return;
    const shares = piece.notes.map((its) => told.looked_at[numberIn(at, its)] ?? 0);
    roll.looks = { note, shares };
    redraw();
    byId("why").hidden = false;
    const { number: bar, beat } = where(piece, note[0]);
    byId("why-title").textContent =
      `Why ${noteName(note[2])}? (${nameOf(note[4])}, bar ${bar}, beat ${beat})`;
    showWhy(byId("why-body"), told, note, nameOf, (program, pitch) =>
      take(note, program, pitch, written),
    );
    say(`${told.alternatives.length} alternatives for ${noteName(note[2])}.`);
  });
}

// Takes another note in the place of one. What follows is written anew, by the request that wrote
// the note; one's own note is another one, and that is all.
function take(note, program, pitch, written) {
  const piece = current();
  if (!note[5]) {
    const asked = written?.how === "instead" ? written.written : written;
    const its = { note: numberIn(piece, note), instead: [pitch, program], written: asked ?? null };
    return write("instead", its);
  }
  settle();
  const other = [note[0], note[1], pitch, note[3], program, 1];
  const gone = [keyOf(note), keyOf(other)];
  const rest = piece.notes.filter((its) => !gone.includes(keyOf(its)));
  change(withNotes(piece, [...rest, other]), noteName(pitch));
  say(`${noteName(pitch)} in the place of ${noteName(note[2])}.`);
}

// --- playing

function onStep(step) {
  const label = player.isPlaying ? "Pause" : "Play";
  byId("play").classList.toggle("on", player.isPlaying);
  if (byId("play").getAttribute("aria-label") !== label)
    byId("play").setAttribute("aria-label", label);
  if (recorder.isOn) redraw();
  if (step !== null) onStepAt(step);
  else if (roll.piece) roll.moveTo(cursor || null);
}

function togglePlay() {
  if (recorder.isOn) return toggleRecord();
  if (player.isPlaying) {
    cursor = Math.floor(onStep.last ?? 0);
    player.stop();
    return;
  }
  const piece = current();
  if (!piece?.notes.length) return;
  if (cursor >= lastEnd(piece)) cursor = 0;
  player.play(cursor);
}

// --- the roll by mouse, touch and keys

function onRollPointer() {
  const canvas = byId("roll");
  let from = null;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return roll.find(event.clientX - box.left, event.clientY - box.top);
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (roll.piece?.notes.length && !writing && !recorder.isOn && event.button === 0)
      from = { ...place(event), x: event.clientX };
  });
  addEventListener("pointermove", (event) => {
    if (!from || Math.abs(event.clientX - from.x) < 6) return;
    if (event.pointerType === "touch") return; // it scrolls
    from.isDrag = true;
    select(from.bar, place(event).bar);
  });
  addEventListener("pointerup", () => {
    if (from?.isDrag) sayBars();
    else if (from?.isRuler) tapBar(from.bar);
    else if (from?.note) explain(from.note);
    else if (from) {
      cursor = Math.floor(from.step);
      if (player.isPlaying) player.play(cursor);
      else onStepAt(cursor);
    }
    from = null;
  });
  addEventListener("pointercancel", () => {
    from = null;
  });
}

// Selects bars from one to another, both of them included.
function select(bar, other) {
  roll.selection = [Math.min(bar, other), Math.max(bar, other) + 1];
  redraw();
  enable();
}

const sayBars = () => say(`${describeBars(roll.selection)} selected.`);

// The number of a bar is tapped: the first to select, then the last; the same again selects nothing.
function tapBar(bar) {
  const [first, end] = roll.selection ?? [];
  if (first === bar && end === bar + 1) return selectNothing();
  select(end === first + 1 ? first : bar, bar);
  sayBars();
}

function selectNothing() {
  server.forget("explain");
  roll.selection = roll.looks = roll.focus = null;
  byId("why").hidden = true;
  redraw();
  enable();
  say("Nothing selected.");
}

function onStepAt(step) {
  if (!roll.piece) return;
  const time = Math.floor(heard().clock.seconds(step));
  setText(byId("clock"), `${Math.floor(time / 60)}:${String(time % 60).padStart(2, "0")}`);
  onStep.last = step;
  roll.moveTo(step);
}

function onRollKey(event) {
  const piece = current();
  if (!piece?.notes.length || writing) return;
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step && event.shiftKey) {
    const [first, end] =
      roll.selection ??
      (() => {
        const { bar } = where(piece, piece.notes[Math.max(0, focus)][0]);
        return [bar, bar];
      })();
    const until = Math.min(piece.bars.length, Math.max(first + 1, end + step));
    select(first, until - 1);
    sayBars();
  } else if (step) {
    focus = Math.min(piece.notes.length - 1, Math.max(0, focus + step));
    const note = piece.notes[focus],
      { number, beat } = where(piece, note[0]);
    roll.focus = note;
    redraw();
    roll.keepInView(note[0]);
    sound.note(note[4], note[2], note[3], undefined, 0.4);
    say(`${roll.words(note, nameOf(note[4]))}, bar ${number}, beat ${beat}.`);
  } else if (event.key === "Enter" && focus >= 0) explain(piece.notes[focus]);
  else if (event.key === "Escape") selectNothing();
  else return;
  event.preventDefault();
}

// --- the score

function engraveSoon() {
  if (!byId("score-section").open || writing) return;
  clearTimeout(engraveSoon.timer);
  engraveSoon.timer = setTimeout(engrave, 200);
}

async function engrave() {
  const piece = current(),
    picture = byId("score-picture"),
    about = byId("about-score");
  if (!piece?.notes.length) {
    picture.hidden = true;
    return;
  }
  try {
    const blob = await (await post("/score", JSON.stringify({ piece }))).blob();
    if (piece !== current()) return;
    URL.revokeObjectURL(picture.src);
    picture.src = URL.createObjectURL(blob);
    picture.hidden = false;
    about.textContent = "engraved; the model's notes are blue";
  } catch (error) {
    picture.hidden = true;
    about.textContent = error.message;
  }
}

// --- taking away

async function takeAway(button) {
  try {
    const response = await post(`/${button.dataset.file}`, JSON.stringify({ piece: current() }));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await response.blob());
    link.download = button.dataset.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    say(`${button.dataset.name} is in your downloads.`);
  } catch (error) {
    say(error.message, true);
  }
}

const around = () => ({
  v: 2,
  model: byId("model").value,
  settings: settings.saved(),
  seed,
  text: byId("text").value,
});

async function copyLink() {
  const text = await textOf(session, around(), LINK);
  if (!text) return say("This piece is too long for a link: take the .mid.", true);
  history.replaceState(null, "", `#s=${text}`);
  keepSoon.state = session.now;
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is in the clipboard, and in the address.");
  } catch {
    say("The link is in the address of this page: copy it from there.");
  }
}

// Keeps the session in the browser as it has become; a link in the address is of another one now.
async function keepSoon() {
  if (!session.now || writing) return;
  if (location.hash) history.replaceState(null, "", location.pathname);
  keepSoon.state = session.now;
  keepSoon.isAgain = keepSoon.isBusy;
  if (keepSoon.isBusy) return;
  keepSoon.isBusy = true;
  const text = await textOf(session, around(), KEPT);
  keepSoon.isBusy = false;
  if (keepSoon.isAgain) return keepSoon();
  byId("is-kept").hidden = !keep(text);
  byId("is-not-kept").hidden = !byId("is-kept").hidden;
}

// Brings back what a link in the address holds, or what this browser has kept.
async function restore() {
  const link = location.hash.match(/^#s=([\w-]+)$/)?.[1],
    text = link ?? kept();
  if (!text) return;
  try {
    const data = await said(text, link ? LINK : KEPT);
    session.unpack(data);
    keepSoon.state = session.now;
    if ([...byId("model").options].some((its) => its.value === data.model))
      byId("model").value = data.model;
    await chooseModel();
    settings.restore(data.settings ?? {});
    byId("text").value = String(data.text ?? "").slice(0, 4000);
    if (Number.isInteger(data.seed) && data.seed >= 0) seed = data.seed;
    show();
    if (link) say("The session is as it was when the link was made.");
    else if (session.now.piece.notes.length)
      say("Your music is as you left it. New begins an empty page.");
  } catch {
    if (link) say("The link in the address is damaged: it was left alone.", true);
  }
}

// --- models

const tellSteps = (steps) =>
  setText(
    byId("model-about"),
    steps ? `after ${steps.toLocaleString("en")} steps of training` : "",
  );

async function listNames() {
  const { models } = await (await fetch("/models")).json();
  const select = byId("model"),
    was = select.value;
  select.replaceChildren(
    ...models.map((name) =>
      Object.assign(document.createElement("option"), {
        value: name,
        textContent: name.replace("/model.safetensors", ""),
      }),
    ),
  );
  if (models.includes(was)) select.value = was;
}

async function listModels() {
  try {
    await listNames();
    const isFirst = !plays;
    await chooseModel();
    if (isFirst) await restore();
  } catch {
    byId("gone").hidden = false;
  }
}

function chooseModel() {
  return new Promise((done) =>
    server.ask("describe", { model: byId("model").value }, (told) => {
      if (told.error) {
        say(told.error, true);
        done();
        return;
      }
      if (!told.plays) return;
      plays = told.plays;
      roll.programs = plays.programs.map(([program]) => program);
      const voice = byId("voice"),
        was = voice.value;
      voice.replaceChildren(
        ...plays.programs
          .filter(([program]) => program !== DRUMS)
          .map(([program, name]) =>
            Object.assign(document.createElement("option"), { value: program, textContent: name }),
          ),
      );
      if (plays.programs.some(([program]) => String(program) === was)) voice.value = was;
      tellSteps(plays.trained);
      settings.fit(plays);
      sound.midi = new Map(plays.programs.map(([program, , midi]) => [program, midi]));
      sound.prepare(roll.programs, plays.pitches).then(() => {
        page.isReady = true;
      });
      show();
      done();
    }),
  );
}

// --- wires

for (const [name, text] of EXAMPLES) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = name;
  button.addEventListener("click", () => {
    byId("text").value = text;
    read(text);
  });
  byId("examples").append(button);
}
byId("text").addEventListener("input", keepSoon);
byId("text-form").addEventListener("submit", (event) => {
  event.preventDefault();
  read(byId("text").value);
});
byId("file").addEventListener("change", (event) => {
  openFile(event.target.files[0]);
  event.target.value = "";
});
byId("model").addEventListener("change", () => {
  settle();
  chooseModel();
});
byId("model").addEventListener("focus", () => listNames().catch(() => {}));
byId("lower").addEventListener("click", () => piano.scroll(-1));
byId("higher").addEventListener("click", () => piano.scroll(1));
byId("record").addEventListener("click", toggleRecord);
byId("rest").addEventListener("click", () => {
  const piece = startedPiece();
  stepped.rest =
    Math.max(lastEnd(piece), stepped.rest ?? 0) +
    Math.round(Number(byId("length").value) * piece.steps);
  say("A rest.");
});
byId("delete-last").addEventListener("click", () => {
  const piece = session.now?.piece;
  if (!piece?.notes.length || writing) return;
  const last = piece.notes.at(-1)[0];
  change({ ...piece, notes: piece.notes.filter((note) => note[0] < last) }, "deleted");
});
for (const radio of document.querySelectorAll("[name=mode]"))
  radio.addEventListener("change", () => {
    if (recorder.isOn) toggleRecord();
    byId("step-tools").hidden = radio.value !== "step";
    byId("record-tools").hidden = radio.value !== "record";
  });
for (const button of document.querySelectorAll("[data-how]"))
  button.addEventListener("click", () => write(button.dataset.how));
for (const button of document.querySelectorAll("[data-file]"))
  button.addEventListener("click", () => takeAway(button));
byId("score-section").addEventListener("toggle", engraveSoon);
byId("copy-link").addEventListener("click", copyLink);
byId("stop-writing").addEventListener("click", stopWriting);
byId("play").addEventListener("click", togglePlay);
byId("to-start").addEventListener("click", () => {
  cursor = 0;
  if (player.isPlaying) player.play(0);
  else onStepAt(0);
});
function goTo(move, word) {
  settle();
  move();
  cursor = 0;
  show();
  say(word);
}
byId("undo").addEventListener("click", () => goTo(() => session.undo(), "Undone."));
byId("redo").addEventListener("click", () => goTo(() => session.redo(), "Redone."));
byId("clear").addEventListener("click", () => {
  if (!plays) return;
  settle();
  cursor = 0;
  roll.selection = null;
  change(freshPiece(), "new", { before: null });
  say("An empty page. Undo brings the music back.");
});
byId("roll").addEventListener("keydown", onRollKey);
onRollPointer();
// Space plays and Ctrl+Z undoes wherever the focus is, but where one types. A control to which one
// went with Tab keeps its own space, but for the keys of the piano, which Enter plays.
let isByTab = false;
addEventListener("pointerdown", () => (isByTab = false), true);
addEventListener("keydown", (event) => (isByTab ||= event.key === "Tab"), true);

function isForPage(event) {
  const { target } = event;
  if (isTyping(target)) return false;
  if (event.key === " ")
    return !isByTab || !target.matches?.("button:not(.key), input, summary, a");
  return (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z";
}
addEventListener("keydown", (event) => {
  if (!isForPage(event)) return;
  event.preventDefault();
  if (event.key !== " ") byId(event.shiftKey ? "redo" : "undo").click();
  else if (!event.repeat) togglePlay();
});
addEventListener("keyup", (event) => {
  if (event.key === " " && isForPage(event)) event.preventDefault(); // no click of the button
});
for (const kind of ["dragover", "dragleave", "drop"])
  addEventListener(kind, (event) => {
    event.preventDefault();
    byId("roll-frame").classList.toggle("drop", kind === "dragover");
    if (kind === "drop") openFile(event.dataTransfer.files[0]);
  });
if (navigator.requestMIDIAccess) {
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
addEventListener("resize", () => {
  redraw();
  cards();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  redraw();
  cards();
});

// For tests, and the curious: the page from the console.
const page = {
  isReady: false,
  firstNoteMilliseconds: null,
  level: () => sound.level(),
  piece: current,
  shown: () => roll.piece,
  session,
};
globalThis.etude = page;
enable();
