// Why a note: what it was chosen among, what the model looked at, and another in its place.
import { byId, make, say, setHidden } from "./dom.js";
import { server } from "./connection.js";
import { removed } from "./edit.js";
import { change, current, model, nameOf, on, page, session, sound, soundOf, tell } from "./page.js";
import { counted, keyOf, numberIn, where, withNotes } from "./piece.js";
import { redraw, roll } from "./stage.js";
import { write } from "./writing.js";

/**
 * @import { Note } from "./piece.js"
 * @import { Ask } from "./session.js"
 * @import { Told } from "./server.js"
 */

/** @param {Note} note */
export function explain(note) {
  const piece = current();
  if (page.writing || !piece || !page.plays) return;
  const { piece: at, written } = note[5]
    ? { piece, written: null }
    : session.origin((each) => numberIn(each, note) >= 0);
  roll.chosen = new Set([keyOf(note)]);
  roll.looks = null;
  redraw();
  sound.note(note[4], note[2], note[3], undefined, 0.6);
  const question = { model: model(), piece: at, note: numberIn(at, note), written };
  server.ask("explain", question, (told) => {
    if (told.error) return say(told.error, true);
    if (told.explained === undefined) return;
    const shares = piece.notes.map((each) => told.looked_at[numberIn(at, each)] ?? 0);
    roll.looks = { note, shares };
    redraw();
    setHidden(byId("why"), false);
    const { number: bar, beat } = where(piece, note[0]);
    byId("why-title").textContent =
      `Why ${soundOf(note[2], note[4])}? (${nameOf(note[4])}, bar ${bar}, beat ${beat})`;
    showWhy(told, note, written);
    say(`${counted(told.alternatives.length, "alternative")} for ${soundOf(note[2], note[4])}.`);
  });
}

/**
 * Takes another note in the place of one. What follows is written anew, by the request that wrote
 * the note; one's own note is another one, and that is all.
 * @param {Note} note
 * @param {number} program
 * @param {number} pitch
 * @param {Ask | null} written
 */
function take(note, program, pitch, written) {
  const piece = current();
  if (!piece) return;
  if (!note[5]) {
    const asked = (written?.how === "instead" ? written.written : written) ?? null;
    const more = { note: numberIn(piece, note), written: asked };
    return write("instead", { ...more, instead: [pitch, program] });
  }
  tell("settle");
  /** @type {Note} */
  const other = [note[0], note[1], pitch, note[3], program, 1];
  const rest = removed(piece, new Set([keyOf(note), keyOf(other)])).piece.notes;
  change(withNotes(piece, [...rest, other]), soundOf(pitch, program));
  say(`${soundOf(pitch, program)} in place of ${soundOf(note[2], note[4])}.`);
}

/** @param {number} share */
function percent(share) {
  if (share >= 0.1) return `${Math.round(share * 100)}%`;
  return share >= 0.001 ? `${(share * 100).toFixed(1)}%` : "< 0.1%";
}

/**
 * @param {Told} told
 * @param {Note} note
 * @param {Ask | null} written
 */
function showWhy(told, note, written) {
  const list = make("ol", { className: "alternatives" });
  for (const [program, pitch, probability] of told.alternatives) {
    const isTaken = program === note[4] && pitch === note[2];
    const button = make("button", { type: "button", disabled: isTaken });
    button.textContent = `${soundOf(pitch, program)} · ${nameOf(program)}`;
    if (isTaken) button.title = "this is the note";
    else if (note[5]) button.title = "take this note instead";
    else button.title = "take this note instead, and write what follows anew";
    button.addEventListener("click", () => take(note, program, pitch, written));
    const bar = make("span", { className: "bar" });
    bar.style.width = `${Math.max(0.5, probability * 100)}%`;
    const share = make("span", { className: "percent" }, percent(probability));
    list.append(make("li", { className: isTaken ? "taken" : "" }, button, bar, share));
  }
  const first = note[5]
    ? "You put this note in. The model would have expected one of these; click one to take it instead."
    : "The model drew this note from these. Click another to take it, and what follows is written anew.";
  const nothing =
    told.nothing >= 0.001 ? ` No further note at this moment: ${percent(told.nothing)}.` : "";
  const after =
    `Probabilities are the model's own, under the rules in force.${nothing} The arcs in the roll lead to` +
    " the notes that it looked at (attention, the mean of all heads and layers).";
  byId("why-body").replaceChildren(
    make("p", {}, first),
    list,
    make("p", { className: "hint" }, after),
  );
}

/** Of what is no longer shown, nothing is told. */
function forget() {
  server.forget("explain");
  roll.looks = null;
  setHidden(byId("why"), true);
}

on("show", forget);
on("forget", forget);
