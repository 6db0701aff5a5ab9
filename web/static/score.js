// The engraved score, while it is open.
import { byId, reason } from "./dom.js";
import { current, on, page } from "./page.js";
import { post } from "./server.js";

const section = /** @type {HTMLDetailsElement} */ (byId("score-section"));
const picture = /** @type {HTMLImageElement} */ (byId("score-picture"));
let waiting = 0;

function engraveSoon() {
  if (!section.open || page.writing) return;
  clearTimeout(waiting);
  waiting = setTimeout(engrave, 200);
}

async function engrave() {
  const piece = current();
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
    byId("about-score").textContent = "engraved; the model's notes are blue";
  } catch (error) {
    if (piece !== current()) return;
    picture.hidden = true;
    byId("about-score").textContent = reason(error);
  }
}

section.addEventListener("toggle", engraveSoon);
on("show", engraveSoon);
