// The page: its parts are put together here, and it begins.
import { byId } from "./dom.js";
import "./connection.js";
import "./cards.js";
import "./chords.js";
import "./controls.js";
import "./editor.js";
import "./keys.js";
import "./legend.js";
import "./ports.js";
import "./score.js";
import "./surprise.js";
import { isKept, restore } from "./keep.js";
import { listModels, loaded } from "./models.js";
import { current, on, page, session, sound } from "./page.js";
import { enable, roll } from "./stage.js";
import "./writing.js";

// the token, which is a cookie now
if (location.search) history.replaceState(null, "", location.pathname + location.hash);

on("server", async () => {
  if (!page.isServed) return;
  const isFirst = !page.plays;
  await listModels();
  if (isFirst && page.plays) await restore();
});
enable();

/**
 * Where a step and a pitch are in the window.
 * @param {number} step
 * @param {number} pitch
 */
function place(step, pitch) {
  const box = byId("roll").getBoundingClientRect();
  const { view } = roll;
  return view && [box.x + view.x(step), box.y + view.y(pitch) + view.row / 2];
}

// For tests, and the curious: the page from the console.
Object.assign(globalThis, {
  etude: {
    get isReady() {
      return loaded.hasSound && loaded.isWarm;
    },
    get isKept() {
      return isKept();
    },
    get bytes() {
      return loaded.bytes;
    },
    level: () => sound.level(),
    piece: current,
    shown: () => roll.piece,
    chosen: () => [...roll.chosen],
    surprise: () => [...roll.surprise.values()],
    place,
    session,
  },
});
