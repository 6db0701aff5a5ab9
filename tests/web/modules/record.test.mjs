import assert from "node:assert/strict";
import { test } from "node:test";
import { onGrid } from "../../../web/static/record.js";
import { piece } from "./pieces.mjs";

test("what is played is put on sixteenths; what came long before the bar is left out", () => {
  const notes = [
    [47, 58.5, 60, 90], // a little early
    [20, 30, 62, 0], // while it was counted in
    [61.4, 62, 64, 0], // short
  ];
  const open = new Map([[67, [72.2, 50]]]);
  assert.deepEqual(onGrid({ piece: piece([]), at: 48, notes, open }, 85), [
    [48, 12, 60, 90],
    [60, 3, 64, 0],
    [72, 12, 67, 50],
  ]);
});
