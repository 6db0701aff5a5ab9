import assert from "node:assert/strict";
import { test } from "node:test";
import { keep, kept, listed, nameOfTab } from "../../../web/static/store.js";

function storage(room = Infinity) {
  const items = new Map();
  return {
    getItem: (name) => items.get(name) ?? null,
    setItem: (name, text) => {
      if (text.length > room) throw new Error("QuotaExceededError");
      items.set(name, text);
    },
  };
}
const entry = (id, more = {}) => ({ id, when: 1, notes: 3, about: id, text: `of ${id}`, ...more });
const ids = (stores) => listed(stores).map(({ id }) => id);

test("the latest come first, each once, and those without notes are not kept for long", () => {
  const stores = [storage(), storage()];
  for (const id of ["a/1", "b/1", "a/1", "c/1"]) assert.ok(keep(entry(id), stores));
  assert.deepEqual(ids(stores), ["c/1", "a/1", "b/1"]);
  keep(entry("d/1", { notes: 0 }), stores);
  assert.equal(kept(stores).id, "d/1");
  keep(entry("e/1", { text: "of a/1" }), stores);
  assert.deepEqual(ids(stores), ["e/1", "c/1", "b/1"]);
});

test("a tab has its own, a new one the latest of any", async () => {
  const [first, second, all] = [storage(), storage(), storage()];
  keep(entry("a/1"), [first, all]);
  keep(entry("b/2"), [second, all]);
  assert.equal(kept([first, all]).id, "a/1");
  assert.equal(await nameOfTab([first, all]), "1");
  assert.equal(await nameOfTab([storage(), all]), null);
  assert.equal(kept([storage(), all]).id, "b/2");
});

test("the oldest go where there is no room, and what is damaged counts for nothing", () => {
  const stores = [storage(), storage(200)];
  for (const id of ["a/1", "b/1", "c/1", "d/1"]) assert.ok(keep(entry(id), stores));
  assert.equal(ids(stores)[0], "d/1");
  assert.ok(ids(stores).length < 4);
  assert.ok(!keep(entry("e/1", { text: "x".repeat(300) }), stores));
  stores[1].setItem("etude.sessions", "{");
  assert.deepEqual(listed(stores), []);
  assert.ok(!keep(entry("a/1"), []));
});
