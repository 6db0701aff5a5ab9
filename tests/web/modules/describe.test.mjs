import assert from "node:assert/strict";
import { test } from "node:test";
import { described, ending, motion, ranks } from "../../../web/static/describe.js";
import { piece } from "./pieces.mjs";

test("a piece ends on the chord that sounds last, or on its lowest note", () => {
  const chord = [
    [0, 48, 55],
    [24, 24, 71],
    [36, 12, 62],
  ];
  assert.equal(ending(piece([[0, 12, 60], ...chord])), "ends on G major");
  assert.equal(
    ending(
      piece([
        [0, 12, 57],
        [0, 12, 60],
        [0, 12, 64],
      ]),
    ),
    "ends on A minor",
  );
  assert.equal(
    ending(
      piece([
        [0, 12, 58],
        [0, 12, 60],
      ]),
    ),
    "ends on B♭",
  );
  assert.equal(ending(piece([])), "");
});

test("what moves in eighths is busy, what moves in halves calm", () => {
  const every = (steps) => piece([0, 1, 2, 3, 4].map((number) => [number * steps, steps, 60]));
  assert.deepEqual(
    [24, 12, 6].map((steps) => motion(every(steps))),
    ["calm", "moving", "busy"],
  );
});

test("the likeliest is said, where all are known", () => {
  assert.deepEqual(ranks([1.2, 0.9, 1.0, 2]), [
    "third likeliest",
    "likeliest",
    "second likeliest",
    "least likely",
  ]);
  assert.deepEqual(ranks([1.2, undefined]), ["", ""]);
  assert.deepEqual(described([piece([[0, 12, 60]])], [1]), ["ends on C"]);
});
