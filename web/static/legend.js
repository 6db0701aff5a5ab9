// The legend: whose notes have which color.
import { byId, make } from "./dom.js";
import { current, nameOf, on } from "./page.js";
import { colorName } from "./roll.js";
import { roll } from "./stage.js";

let shown = "";

function show() {
  const notes = current()?.notes ?? [];
  const entries = notes.some((note) => note[5]) ? [["yours", "--own"]] : [];
  const written = new Set(notes.filter((note) => !note[5]).map((note) => note[4]));
  for (const program of [...written].sort((a, b) => a - b))
    entries.push([nameOf(program), colorName(roll.programs, program)]);
  if (shown === String(entries)) return;
  shown = String(entries);
  byId("legend").replaceChildren(
    ...entries.map(([text, name]) => {
      const spot = make("i");
      spot.style.background = `var(${name})`;
      return make("span", {}, spot, text);
    }),
  );
}

on("show", show);
on("draw", show);
