import assert from "node:assert/strict";
import { test } from "node:test";
import { LINK, said, textOf } from "../../../web/static/link.js";
import { Session } from "../../../web/static/session.js";
import { piece } from "./pieces.mjs";

const state = (made, more = {}) => ({
  ...{
    tune: "1",
    piece: made,
    label: "",
    written: null,
    before: null,
    variations: null,
    chosen: 0,
    chords: [],
  },
  ...more,
});
const [first, second, other] = [60, 62, 64].map((pitch) => piece([[0, 12, pitch]]));
const has = (made) => (each) => each === made;

function written() {
  const session = new Session();
  session.push(state(first));
  const ask = { how: "continue", piece: first };
  session.push(state(second, { before: 0, written: ask, variations: [second, other] }));
  return [session, ask];
}

test("what is done after an undo takes the place of what was undone", () => {
  const [session] = written();
  session.undo();
  assert.ok(session.canRedo);
  session.push(state(other));
  assert.ok(!session.canRedo);
  assert.equal(session.states.length, 2);
});

test("a note comes from the state in which it was first there", () => {
  const [session, ask] = written();
  session.push(state(second, { before: 1 }));
  assert.equal(session.origin(has(second)).written, ask);
});

test("a variation that was edited comes from its edit, another from what wrote it", () => {
  const [session, ask] = written();
  const edited = piece([[0, 12, 70]]);
  session.push(state(edited, { before: 1, variations: [edited, other] }));
  assert.deepEqual(session.source(1), { before: 0, written: ask });
  session.push(state(other, { ...session.source(1), variations: [edited, other], chosen: 1 }));
  assert.deepEqual(session.source(0), { before: 2, written: null });
});

test("a link says the whole session, and no more than it may", async () => {
  const [session] = written();
  const text = await textOf(session, { seed: 7 }, LINK);
  assert.match(text, /^[\w-]+$/);
  const data = await said(text, LINK);
  const back = new Session();
  back.unpack(data);
  assert.equal(data.seed, 7);
  assert.deepEqual(back.states, session.states);
  assert.equal(back.states[1].variations[0], back.now.piece);
  await assert.rejects(said(text, { ...LINK, unpacked: 10 }), /too long/);
  assert.throws(() => back.unpack({ ...data, pieces: [{}] }), /no session/);
});
