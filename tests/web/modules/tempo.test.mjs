import assert from "node:assert/strict";
import { test } from "node:test";
import { clockOf } from "../../../web/static/piece.js";
import { retimed } from "../../../web/static/record.js";
import { answerStep, tempoOf } from "../../../web/static/tempo.js";
import { piece } from "./pieces.mjs";

/** Onsets in seconds of notes that follow each other after so many beats, a little uneven. */
function played(tempo, ...beats) {
  let place = 0;
  return [0, ...beats].map((gap, number) => {
    place += gap;
    return (place * 60) / tempo + 0.012 * Math.sin(7 * number);
  });
}

test("the tempo is that in which notes lie on beats", () => {
  for (const tempo of [62, 80, 100, 132, 150])
    for (const beats of [
      [1, 1, 1, 1, 1],
      [1, 1, 0.5, 0.5, 1, 2],
      [1.5, 0.5, 1, 1, 2],
    ]) {
      const felt = tempoOf(played(tempo, ...beats), [50, 180], 80);
      const whole = felt > 1.5 * tempo ? felt / 2 : felt; // slow quarters may be halves
      assert.ok(Math.abs(whole - tempo) <= 0.03 * tempo, `${felt}, not ${tempo}: ${beats}`);
    }
  assert.equal(tempoOf([3], [50, 180], 80), 80);
  const chords = [0, 0.01, 0.02, 0.6, 0.61, 1.2];
  assert.equal(tempoOf(chords, [50, 180], 80), 100);
});

test("an answer begins on the beat after the pause that can still be met", () => {
  const three = piece([[0, 12, 60]], [3, 4], 1);
  const any = () => true;
  for (const [end, pause, step] of [
    [12, "", 12],
    [13, "", 24],
    [12, "beat", 24],
    [13, "beat", 36],
    [12, "bar", 48],
    [80, "bar", 120], // after the last bar
  ])
    assert.equal(answerStep(three, end, pause, any), step);
  assert.equal(
    answerStep(three, 12, "", (step) => step > 30),
    36,
  );
  assert.equal(answerStep(piece([], [6, 8], 1), 6, "beat", any), 36);
});

test("what was played lies at the same times in another tempo", () => {
  const empty = { ...piece([], [4, 4], 1), tempo: [[120]] };
  const notes = [[12, 18, 60, 90]];
  const was = { piece: empty, clock: clockOf(empty), at: 0, begin: 3, notes, open: new Map() };
  const now = retimed(was, 60);
  assert.deepEqual(now.notes, [[6, 9, 60, 90]]);
  assert.equal(now.clock.seconds(6), was.clock.seconds(12));
});
