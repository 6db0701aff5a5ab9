// The panel that says why a note: what it was chosen among, and what the model looked at.
import { noteName } from "./piece.js";

const percent = (share) =>
  share >= 0.1
    ? `${Math.round(share * 100)}%`
    : share >= 0.001
      ? `${(share * 100).toFixed(1)}%`
      : "< 0.1%";

export function showWhy(body, told, note, nameOf, onTake) {
  const list = document.createElement("ol");
  list.className = "alternatives";
  for (const [program, pitch, probability] of told.alternatives) {
    const item = document.createElement("li"),
      button = document.createElement("button"),
      share = document.createElement("span"),
      bar = document.createElement("span");
    const isTaken = program === note[4] && pitch === note[2];
    button.type = "button";
    button.textContent = `${noteName(pitch)} · ${nameOf(program)}`;
    button.disabled = isTaken;
    if (isTaken) item.className = "taken";
    button.title = isTaken
      ? "this is the note"
      : note[5]
        ? "take this note instead"
        : "take this note instead, and write what follows anew";
    button.addEventListener("click", () => onTake(program, pitch));
    bar.className = "bar";
    bar.style.width = `${Math.max(0.5, probability * 100)}%`;
    share.className = "percent";
    share.textContent = percent(probability);
    item.append(button, bar, share);
    list.append(item);
  }
  const first = document.createElement("p"),
    after = document.createElement("p");
  first.textContent = note[5]
    ? "You put this note in. The model would have expected one of these; click one to take it instead."
    : "The model drew this note from these. Click another to take it, and what follows is written anew.";
  const nothing =
    told.nothing >= 0.001 ? ` No further note at this moment: ${percent(told.nothing)}.` : "";
  after.className = "hint";
  after.textContent = `Probabilities are the model's own, under the rules in force.${nothing} The arcs in the roll lead to the notes that it looked at (attention, the mean of all heads and layers).`;
  body.replaceChildren(first, list, after);
}
