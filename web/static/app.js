// The page: what a person does, what the server tells, and what is shown.
import { Piano } from "./piano.js";
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
} from "./piece.js";
import { Recorder } from "./record.js";
import { Roll, drawSmall } from "./roll.js";
import { Server, post } from "./server.js";
import { Session, VARIATIONS, fromLink, toLink } from "./session.js";
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
const byId = (id) => document.getElementById(id);

if (location.search) history.replaceState(null, "", location.pathname + location.hash); // the token, which is a cookie now
const session = new Session();
const sound = new Sound();
const settings = new Settings(() => soon(check));
const roll = new Roll(byId("roll"), [], byId("cursor"));
const piano = new Piano(byId("piano"), press, release);
const recorder = new Recorder(sound, addRecorded);
const player = new Player(sound, heard, onStep);
const server = new Server((isThere) => {
  byId("gone").hidden = isThere;
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

function heard() {
  const piece = current();
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
  Object.assign(roll, { focus: null, looks: null });
  byId("why").hidden = true;
  if (!writing)
    roll.selection =
      roll.selection && piece && roll.selection[1] <= piece.bars.length ? roll.selection : null;
  redraw();
  enable();
  legend();
  cards();
  engraveSoon();
}

function redraw() {
  const piece = current();
  byId("roll-empty").hidden = Boolean(piece?.notes.length);
  if (piece) roll.show(piece);
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
    has = Boolean(current()?.notes.length);
  for (const button of document.querySelectorAll("[data-how]")) {
    const how = button.dataset.how;
    button.disabled =
      !isReady ||
      Boolean(writing) ||
      (!has && how !== "continue") ||
      (how === "rewrite" && !roll.selection);
  }
  byId("about-action").textContent = writing
    ? ""
    : !has
      ? "Without notes, the model begins by itself."
      : !roll.selection
        ? "To rewrite, drag over bars in the roll."
        : `${describeBars(roll.selection)} selected.`;
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

function startedPiece() {
  if (session.now) return session.now.piece;
  const { meter, tempo } = settings.get();
  const [slowest, fastest, levels] = plays.tempos;
  return emptyPiece(
    plays,
    meter ?? [4, 4],
    tempo ?? (levels === 1 ? slowest : Math.min(fastest, Math.max(slowest, 96))),
  );
}

function addNotes(notes, label) {
  if (!plays || !notes.length) return;
  const piece = startedPiece();
  const added = notes.map(([onset, duration, pitch]) => [
    onset,
    duration,
    pitch,
    plays.velocity,
    ownVoice(),
    1,
  ]);
  const there = new Set(added.map(keyOf));
  change(
    withNotes(piece, [...piece.notes.filter((note) => !there.has(keyOf(note))), ...added]),
    label,
  );
  cursor = 0;
  roll.keepInView(notes.at(-1)[0]);
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

function addRecorded(notes) {
  if (notes.length) {
    addNotes(notes, "recording");
    say(`Recorded ${notes.length} notes.`);
  } else say("Nothing was played.");
}

function toggleRecord() {
  const button = byId("record");
  if (recorder.isOn) recorder.stop();
  else if (plays) {
    const piece = startedPiece(),
      starts = barStarts(piece),
      end = lastEnd(piece);
    const beats = Math.max(1, Math.round((piece.bars.at(-1)[0] * 4) / piece.bars.at(-1)[1]));
    player.stop();
    recorder.start(
      {
        tempo: piece.tempo.at(-1)[0],
        beats,
        steps: piece.steps,
        at: piece.notes.length ? (starts.find((start) => start >= end) ?? starts.at(-1)) : 0,
      },
      () => say("Recording. Press Stop when you are done."),
    );
    say("One bar of clicks, then play.");
  }
  button.textContent = recorder.isOn ? "Stop" : "Record";
  button.setAttribute("aria-pressed", recorder.isOn);
}

function read(text) {
  server.ask("text", { model: byId("model").value, text, settings: settings.get() }, (told) => {
    if (told.error) return say(told.error, true);
    taken(told, "text");
  });
}

function taken(told, label) {
  player.stop();
  cursor = 0;
  roll.selection = null;
  change(told.read, label, { before: null });
  say([`${told.read.notes.length} notes`, ...told.changes].join("; ") + ".");
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
  return {
    model: byId("model").value,
    how,
    piece: session.now?.piece ?? startedPiece(),
    settings: settings.get(),
    variations: VARIATIONS,
    random_seed: seed,
    ...more,
  };
}

function write(how, more = {}) {
  if (!plays || writing) return;
  seed = (seed + 1) % 2 ** 31;
  sound.wake();
  player.stop();
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
  say(
    [
      `Wrote ${variations.length === 1 ? "one piece" : `${variations.length} variations`}`,
      ...changes,
    ].join("; ") + ".",
  );
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

function explain(note) {
  const piece = current();
  if (writing || !note || !plays) return;
  const { piece: at, written } = note[5]
    ? { piece, written: null }
    : session.origin((p) => p.notes.some((n) => keyOf(n) === keyOf(note)));
  const number = at.notes.findIndex((n) => keyOf(n) === keyOf(note));
  roll.focus = note;
  roll.looks = null;
  redraw();
  sound.note(note[4], note[2], note[3], undefined, 0.6);
  server.ask(
    "explain",
    { model: byId("model").value, piece: at, note: number, written },
    (told) => {
      if (told.error) return say(told.error, true);
      if (told.explained === undefined) return;
      const shares = piece.notes.map((n) => {
        const i = at.notes.findIndex((m) => keyOf(m) === keyOf(n));
        return told.looked_at[i] ?? 0;
      });
      roll.looks = { note, shares };
      redraw();
      byId("why").hidden = false;
      const { number: bar, beat } = where(piece, note[0]);
      byId("why-title").textContent =
        `Why ${noteName(note[2])}? (${nameOf(note[4])}, bar ${bar}, beat ${beat})`;
      showWhy(byId("why-body"), told, note, nameOf, (program, pitch) => {
        write("instead", { instead: [note[0], note[1], pitch, note[3], program] });
      });
      say(`${told.alternatives.length} alternatives for ${noteName(note[2])}.`);
    },
  );
}

// --- playing

function onStep(step) {
  const label = player.isPlaying ? "Pause" : "Play";
  byId("play").classList.toggle("on", player.isPlaying);
  if (byId("play").getAttribute("aria-label") !== label)
    byId("play").setAttribute("aria-label", label);
  if (step !== null) {
    const time = Math.floor(heard().clock.seconds(step));
    setText(byId("clock"), `${Math.floor(time / 60)}:${String(time % 60).padStart(2, "0")}`);
    onStep.last = step;
  }
  if (roll.piece) roll.moveTo(step);
}

function togglePlay() {
  if (player.isPlaying) {
    player.stop();
    cursor = Math.floor(onStep.last ?? 0);
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
    if (roll.piece?.notes.length && !writing && event.button === 0)
      from = { ...place(event), x: event.clientX };
  });
  addEventListener("pointermove", (event) => {
    if (
      !from ||
      Math.abs(event.clientX - from.x) < 6 ||
      (event.pointerType === "touch" && !from.isRuler)
    )
      return;
    const to = place(event);
    roll.selection = [Math.min(from.bar, to.bar), Math.max(from.bar, to.bar) + 1];
    from.isDrag = true;
    redraw();
    enable();
  });
  addEventListener("pointerup", () => {
    if (!from) return;
    if (from.isDrag) say(`${describeBars(roll.selection)} selected.`);
    else if (from.isRuler) {
      roll.selection =
        roll.selection?.[0] === from.bar && roll.selection[1] === from.bar + 1
          ? null
          : [from.bar, from.bar + 1];
      redraw();
      enable();
    } else if (from.note) explain(from.note);
    else {
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

function onStepAt(step) {
  onStep.last = step;
  if (roll.piece) roll.moveTo(step);
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
    roll.selection = [first, until];
    say(`${describeBars(roll.selection)} selected.`);
    redraw();
    enable();
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
  else if (event.key === "Escape") {
    roll.selection = roll.looks = roll.focus = null;
    byId("why").hidden = true;
    redraw();
    enable();
    say("Nothing selected.");
  } else return;
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

async function copyLink() {
  const text = await toLink(session, {
    v: 2,
    model: byId("model").value,
    settings: settings.saved(),
    seed,
    text: byId("text").value,
  });
  if (!text) return say("This piece is too long for a link: take the .mid.", true);
  history.replaceState(null, "", `#s=${text}`);
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is in the clipboard, and in the address.");
  } catch {
    say("The link is in the address of this page: copy it from there.");
  }
}

async function restoreLink() {
  const text = location.hash.match(/^#s=([\w-]+)$/)?.[1];
  if (!text) return;
  try {
    const data = await fromLink(text);
    session.unpack(data);
    if ([...byId("model").options].some((its) => its.value === data.model))
      byId("model").value = data.model;
    await chooseModel();
    settings.restore(data.settings ?? {});
    byId("text").value = String(data.text ?? "").slice(0, 4000);
    if (Number.isInteger(data.seed) && data.seed >= 0) seed = data.seed;
    show();
    say("The session is as it was when the link was made.");
  } catch {
    say("The link in the address is damaged: it was left alone.", true);
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
    if (isFirst) await restoreLink();
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
          .filter(([program]) => program !== 128)
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
byId("text-form").addEventListener("submit", (event) => {
  event.preventDefault();
  read(byId("text").value);
});
byId("file").addEventListener("change", (event) => {
  openFile(event.target.files[0]);
  event.target.value = "";
});
byId("model").addEventListener("change", chooseModel);
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
byId("undo").addEventListener("click", () => {
  player.stop();
  session.undo();
  cursor = 0;
  show();
  say("Undone.");
});
byId("redo").addEventListener("click", () => {
  player.stop();
  session.redo();
  cursor = 0;
  show();
  say("Redone.");
});
byId("clear").addEventListener("click", () => {
  player.stop();
  if (plays) {
    const { meter, tempo } = settings.get();
    change(emptyPiece(plays, meter ?? [4, 4], tempo ?? plays.tempos[0]), "new", { before: null });
  }
  cursor = 0;
  say("An empty page. Undo brings the music back.");
});
byId("roll").addEventListener("keydown", onRollKey);
onRollPointer();
addEventListener("keydown", (event) => {
  if (event.target.closest?.("input, select, textarea, button, summary, a")) return;
  if (event.key === " ") {
    event.preventDefault();
    togglePlay();
  }
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") {
    event.preventDefault();
    byId(event.shiftKey ? "redo" : "undo").click();
  }
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
  session,
};
globalThis.etude = page;
enable();
