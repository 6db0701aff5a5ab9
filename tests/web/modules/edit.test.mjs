import assert from "node:assert/strict";
import { test } from "node:test";
import * as edits from "../../../web/static/edit.js";
import { keys, piece, short } from "./pieces.mjs";

const ALL = [0, 127];
const tune = piece([
  [0, 12, 60],
  [12, 12, 64],
  [24, 12, 67],
]);

test("notes move together, and stay within the piece's time and the range", () => {
  const both = keys([0, 60], [12, 64]);
  assert.deepEqual(short(edits.moved(tune, both, 6, 2, ALL).piece).slice(0, 2), [
    [6, 12, 62],
    [18, 12, 66],
  ]);
  assert.deepEqual(edits.moved(tune, both, -99, 99, [0, 70]).keys, ["0/40/66", "12/40/70"]);
});

test("an edited note is one's own, and the others are as they were", () => {
  const { piece: made } = edits.stretched(tune, keys([12, 64]), 6, 3);
  assert.deepEqual(
    made.notes.map((note) => [note[1], note[5]]),
    [
      [12, 0],
      [18, 1],
      [12, 0],
    ],
  );
  assert.equal(made.notes[0], tune.notes[0]);
});

test("a note takes the place of one that begins on the same key at the same time", () => {
  const { piece: made } = edits.moved(tune, keys([12, 64]), 12, 3, ALL);
  assert.deepEqual(short(made), [
    [0, 12, 60],
    [24, 12, 67],
  ]);
});

test("a note ends where its key is struck again", () => {
  const { piece: made } = edits.moved(tune, keys([12, 64]), 6, -4, ALL);
  const { piece: longer } = edits.stretched(made, keys([0, 60]), 36, 3);
  assert.deepEqual(short(longer), [
    [0, 18, 60],
    [18, 12, 60],
    [24, 12, 67],
  ]);
});

test("no note becomes shorter than the grid, or than it was", () => {
  assert.equal(edits.stretched(tune, keys([0, 60]), -99, 6).piece.notes[0][1], 6);
  const short = piece([[0, 3, 60]]);
  assert.equal(edits.stretched(short, keys([0, 60]), -99, 6).piece.notes[0][1], 3);
});

test("the grid begins anew with each bar, and is that of the meter", () => {
  const jig = piece([], [6, 8]);
  assert.equal(edits.gridSteps(jig, "beat"), 18);
  assert.equal(edits.gridSteps(jig, "1/8"), 6);
  assert.equal(edits.snap(jig, "beat", 44), 36);
  assert.equal(edits.snap(jig, "beat", 46), 54);
  const upbeat = {
    ...piece([]),
    bars: [
      [4, 4, 18],
      [4, 4, 48],
    ],
  };
  assert.equal(edits.snap(upbeat, "1/4", 7), 6); // the last beat of the upbeat
});

test("what was played beside the grid is put on it", () => {
  const loose = piece([
    [1, 10, 60],
    [11, 20, 64],
  ]);
  assert.deepEqual(short(edits.quantized(loose, keys([1, 60], [11, 64]), "1/8").piece), [
    [0, 12, 60],
    [12, 18, 64],
  ]);
});

test("what was copied comes where it is put, with bars for it", () => {
  const { piece: made, keys: put } = edits.pasted(tune, tune.notes.slice(1), 96);
  assert.deepEqual(put, ["96/40/64", "108/40/67"]);
  assert.equal(made.notes.length, 5);
  assert.equal(made.bars.length, 3);
  assert.deepEqual(short(edits.removed(made, new Set(put)).piece), short(tune));
});

test("notes that go to a piece of other parts keep their instruments", () => {
  const band = [
    ["MELODY", 73],
    ["PIANO", 0],
  ];
  const programs = (notes, from, to) =>
    edits.fitted(piece(notes).notes, from, to).map((note) => note[4]);
  const strings = [
    [0, 12, 60, 40],
    [0, 12, 48, 42],
    [0, 12, 38, 128],
  ];
  assert.deepEqual(programs(strings, undefined, band), [169, 171, 128]);
  const players = [
    [0, 12, 60, 0],
    [0, 12, 48, 1],
    [0, 12, 50, 169],
    [0, 12, 38, 128],
  ];
  assert.deepEqual(programs(players, band, undefined), [73, 0, 40, 128]);
  assert.deepEqual(programs(players, band, [["PIANO", 0]]), [202, 129, 169, 128]);
  assert.deepEqual(programs(players, band, band), [0, 1, 169, 128]);
});
