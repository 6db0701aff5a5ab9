import assert from "node:assert/strict";
import { test } from "node:test";
import { View } from "../../../web/static/view.js";
import { piece } from "./pieces.mjs";

const tune = piece([
  [0, 12, 60],
  [48, 24, 64],
]);
const look = (more = {}) =>
  new View(tune, {
    ...{ width: 444, height: 324, left: 0, top: 0, zoom: 1, isTouch: false, isSmall: false },
    ...{ hasChords: false, isDrummed: false, range: null, ...more },
  });

test("steps and pitches are found where they are drawn, scrolled and zoomed, too", () => {
  for (const more of [
    {},
    { hasChords: true },
    { zoom: 3, left: 120, top: 30 },
    { isTouch: true },
  ]) {
    const view = look(more);
    for (const step of [0, 30, 95]) assert.ok(Math.abs(view.step(view.x(step)) - step) < 1e-6);
    for (const pitch of [view.low, 64, view.high])
      assert.equal(view.pitch(view.y(pitch) + view.row / 2), pitch);
  }
});

test("a place is a note, its end, the number of a bar, or a key", () => {
  const view = look();
  const [x, y, width, height] = view.box(tune.notes[1]);
  assert.equal(view.find(x + 3, y + height / 2).note, tune.notes[1]);
  assert.ok(!view.find(x + 3, y + height / 2).isEnd);
  assert.ok(view.find(x + width - 2, y + height / 2).isEnd);
  const ruler = view.find(x + 3, 5);
  assert.deepEqual([ruler.isRuler, ruler.bar, ruler.note], [true, 1, null]);
  assert.ok(view.find(10, y).isKeys);
});

test("while one edits, the rows stay", () => {
  assert.equal(look({ range: [40, 80] }).high, 80);
  assert.ok(look().high - look().low >= 24);
});
