import assert from "node:assert/strict";
import { test } from "node:test";
import { clockOf } from "../../../web/static/piece.js";
import { Recorder, onGrid } from "../../../web/static/record.js";
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

test("what is counted in goes on into the first beat, also of an upbeat", () => {
  // two beats a second: the length of the first bar, and the first click before it
  for (const [length, first] of [
    [48, -2],
    [12, -3.5],
    [6, -3.75],
  ]) {
    const score = {
      ...piece([]),
      bars: [
        [4, 4, length],
        [4, 4, 48],
      ],
    };
    const clicks = [];
    const sound = { now: 0, wake() {}, click: (at, isFirst) => clicks.push([at, isFirst]) };
    const recorder = new Recorder(sound, () => {});
    const { begin } = recorder.start({ piece: score, clock: clockOf(score), bar: 0 }, () => {});
    recorder.end();
    assert.equal(clicks.length, Math.ceil(-first * 2));
    clicks.forEach(([at, isFirst], number) => {
      assert.ok(Math.abs(at - begin - first - number / 2) < 1e-9);
      assert.equal(isFirst, number % 4 === 0);
    });
  }
});
