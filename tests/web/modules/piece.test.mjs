import assert from "node:assert/strict";
import { test } from "node:test";
import * as its from "../../../web/static/piece.js";
import { piece } from "./pieces.mjs";

test("a beat of 6/8 is a dotted quarter", () => {
  const jig = piece([], [6, 8]);
  assert.deepEqual(its.barOf(jig, 0).beats, [
    [1, 0],
    [2, 18],
  ]);
  assert.deepEqual(its.where(jig, 54), { bar: 1, number: 2, beat: 2 });
});

test("an upbeat has the last beats of a bar, and the number 0", () => {
  const upbeat = {
    ...piece([]),
    bars: [
      [4, 4, 12],
      [4, 4, 48],
    ],
  };
  assert.deepEqual(its.where(upbeat, 0), { bar: 0, number: 0, beat: 4 });
  assert.deepEqual(its.where(upbeat, 12), { bar: 1, number: 1, beat: 1 });
});

test("a clock goes there and back, over changes of tempo and after the end", () => {
  const two = { ...piece([]), tempo: [[60], [120]] };
  const clock = its.clockOf(two);
  assert.equal(clock.seconds(48), 4);
  for (const step of [0, 7, 47, 48, 60, 96, 200])
    assert.ok(Math.abs(clock.step(clock.seconds(step)) - step) < 1e-9);
});

test("there are bars for all notes", () => {
  const long = its.withNotes(piece([]), piece([[200, 12, 60]]).notes);
  assert.equal(long.bars.length, long.tempo.length);
  assert.ok(its.barStarts(long).at(-1) > 200);
});

test("what is no piece is not taken for one", () => {
  assert.ok(its.isPiece(piece([[0, 12, 60]])));
  for (const wrong of [null, {}, { ...piece([]), bars: [] }, { ...piece([]), notes: [[0, 1]] }])
    assert.ok(!its.isPiece(wrong));
});
