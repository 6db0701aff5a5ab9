// The engraved score of the bars that are selected, or of all, while it is open.
import { all, byId, reason, setHidden } from "./dom.js";
import { current, on, page } from "./page.js";
import { post } from "./server.js";
import { selectedPiece, selectedWords } from "./stage.js";

/** @import { Piece } from "./piece.js" */

const section = /** @type {HTMLDetailsElement} */ (byId("score-section"));
const picture = /** @type {HTMLImageElement} */ (byId("score-picture"));
let waiting = 0;
/** @type {Piece | null} that was asked for last */
let latest = null;

function engraveSoon() {
  if (!section.open || page.writing) return;
  clearTimeout(waiting);
  waiting = setTimeout(engrave, 200);
}

async function engrave() {
  const piece = (latest = selectedPiece());
  if (!piece?.notes.length) {
    picture.hidden = true;
    return;
  }
  const isMixed = new Set(piece.notes.map((note) => note[5])).size > 1;
  const words = (selectedWords() || "all bars") + (isMixed ? "; the model's notes are blue" : "");
  try {
    const blob = await (await post("/score", JSON.stringify({ piece }))).blob();
    if (piece !== latest) return;
    URL.revokeObjectURL(picture.src);
    picture.src = URL.createObjectURL(blob);
    picture.hidden = false;
    byId("about-score").textContent = words;
  } catch (error) {
    if (piece !== latest) return;
    picture.hidden = true;
    byId("about-score").textContent = reason(error);
  }
}

/** Offers notation, which music that is counted in seconds has not. */
function offer() {
  const hasNone = (current() ?? page.plays)?.grid === "seconds";
  for (const place of all("#score-section, [data-file=musicxml]")) setHidden(place, hasNone);
  if (!hasNone) engraveSoon();
}

section.addEventListener("toggle", engraveSoon);
on("show", offer);
on("select", engraveSoon);
