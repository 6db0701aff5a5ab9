import assert from "node:assert/strict";
import { test } from "node:test";
import { beatsOf, clockOf } from "../../../web/static/piece.js";
import { Player } from "../../../web/static/player.js";
import { piece } from "./pieces.mjs";

// two bars of quarters, a second each (240 a minute)
const tune = {
  ...piece([0, 12, 24, 36, 48, 60, 72, 84].map((onset) => [onset, 12, 60 + onset / 12])),
  tempo: [[240], [240]],
};

/** Lets the notes before a step come after some seconds. */
function setFrontier(heard, sound, [seconds, step]) {
  const first = heard.frontier;
  Object.defineProperty(heard, "frontier", { get: () => (sound.now < seconds ? first : step) });
}

/** Plays for some seconds, a tick every hundredth; gives times and pitches, and the steps. */
function played(seconds, more = {}, from = 0) {
  const sound = {
    now: 0,
    notes: [],
    clicks: [],
    wake: () => {},
    silence: () => {},
    note: (program, pitch, velocity, at) => sound.notes.push([at, pitch]),
    click: (at, isFirst) => sound.clicks.push([at, isFirst]),
  };
  const steps = [];
  const heard = {
    ...{ piece: tune, clock: clockOf(tune), isComplete: true, frontier: 0 },
    ...{ loop: null, beats: [], silent: new Set(), ...more },
  };
  if (more.comes) setFrontier(heard, sound, more.comes);
  const player = new Player(
    sound,
    () => heard,
    (step) => steps.push(step),
  );
  player.play(from, 0);
  while (player.isPlaying && sound.now < seconds) {
    sound.now += 0.01;
    player.tick();
  }
  player.stop();
  return { ...sound, steps: steps.filter((step) => step !== null) };
}

test("a piece is played to its end", () => {
  const { notes, now } = played(9);
  assert.deepEqual(
    notes.map(([, pitch]) => pitch),
    [60, 61, 62, 63, 64, 65, 66, 67],
  );
  assert.ok(now < 2.5);
});

test("a loop comes again without a gap, and never beyond its end", () => {
  const { notes, steps } = played(3.1, { loop: [48, 96] }, 48);
  notes.forEach(([at, pitch], number) => {
    assert.ok(Math.abs(at - number * 0.25) < 1e-6);
    assert.equal(pitch, 64 + (number % 4));
  });
  assert.ok(notes.length >= 12);
  assert.ok(steps.every((step) => step >= 48 && step < 96));
});

test("what is after the loop goes back to it", () => {
  const { notes } = played(0.5, { loop: [0, 48] }, 72);
  assert.equal(notes[0][1], 60);
});

test("voices that are silent are not heard, the metronome clicks on beats", () => {
  const { notes, clicks } = played(1.5, { silent: new Set([40]), beats: beatsOf(tune) });
  assert.deepEqual(notes, []);
  assert.deepEqual(
    clicks.slice(0, 5).map(([, isFirst]) => isFirst),
    [true, false, false, false, true],
  );
});

test("notes that come late sound on a beat, where there is a pulse", () => {
  const more = { isComplete: false, frontier: 24, comes: [0.9, 96] };
  const { notes } = played(3, { ...more, pulse: 0.25 });
  const times = notes.map(([at]) => Math.round(at * 1000) / 250);
  assert.deepEqual(times, [0, 1, 4, 5, 6, 7, 8, 9]);
});

test("notes that are not complete are waited for", () => {
  const { notes } = played(3, { isComplete: false, frontier: 24 });
  assert.deepEqual(
    notes.map(([, pitch]) => pitch),
    [60, 61],
  );
});
