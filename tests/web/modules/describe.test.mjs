import assert from "node:assert/strict";
import { test } from "node:test";
import { described, ending, ranks, traits } from "../../../web/static/describe.js";
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

test("variations are told apart by what each alone has most or least of", () => {
  const made = (...pitches) => piece(pitches.map((pitch, number) => [number * 6, 6, pitch]));
  const twice = made(60, 62);
  assert.deepEqual(traits([made(60, 62, 64, 65), made(60, 72), made(55, 57)]), [
    ["busiest", "smoothest"],
    ["most leaps", "highest top"],
    ["lowest bass", "lowest top"],
  ]);
  assert.deepEqual(traits([twice, twice]), [[], []]);
  assert.deepEqual(traits([twice]), [[]]);
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
