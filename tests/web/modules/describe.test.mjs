import assert from "node:assert/strict";
import { test } from "node:test";
import { copied, described, ending, ranks, traits } from "../../../web/static/describe.js";
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

test("the best is said: to a critic of style, or what the model finds likeliest", () => {
  const ranked = { order: [2, 0, 1], beyond: [false, false, false], has_critic: true };
  assert.deepEqual(ranks(ranked), [
    "second truest",
    "least true to its style",
    "truest to its style",
  ]);
  assert.deepEqual(ranks({ ...ranked, has_critic: false, beyond: [false, true, false] }), [
    "second likeliest",
    "out of its style",
    "likeliest",
  ]);
  assert.deepEqual(ranks({ order: [0], beyond: [false], has_critic: true }), [""]);
});

test("a run that a training piece has, too, is said last", () => {
  const alone = [piece([[0, 12, 60]])];
  assert.deepEqual(described(alone, [undefined], [undefined]), ["ends on C"]);
  assert.deepEqual(described(alone, ["likeliest"], [copied([[17, "bwv 26"]])]), [
    "likeliest, ends on C, 17 notes as in “bwv 26”",
  ]);
  assert.equal(copied([]), "");
});
