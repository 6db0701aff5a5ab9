// Sessions as the browser keeps them: the tab's own, which a reload brings back, and the latest of
// all tabs.

/**
 * `notes` are how many it has, `about` says in words what it is.
 * @typedef {{ id: string, when: number, notes: number, about: string, text: string }} Kept
 */

const TAB = "etude.session";
const ALL = "etude.sessions";
const CONTROLS = "etude.controls";
const MOST = 12;
const RELOAD = 500; // milliseconds: until the page that is reloaded is gone, it has the name

/** @returns {Storage[]} of the tab, and of all; none where the browser keeps nothing */
function stores() {
  try {
    return [sessionStorage, localStorage];
  } catch {
    return [];
  }
}

/**
 * @param {Storage | undefined} store
 * @param {string} name
 * @returns {any}
 */
function read(store, name) {
  try {
    return JSON.parse(store?.getItem(name) ?? "null");
  } catch {
    return null;
  }
}

/**
 * What is kept, the latest first.
 * @returns {Kept[]}
 */
export function listed([, all] = stores()) {
  const list = read(all, ALL);
  return Array.isArray(list) ? list.filter((entry) => typeof entry?.text === "string") : [];
}

/**
 * What is to come back: this tab's session, or else the latest of any.
 * @returns {Kept | undefined}
 */
export function kept([tab, all] = stores()) {
  return read(tab, TAB) ?? listed([tab, all])[0];
}

/**
 * Keeps a session in the place of one with the same id or the same text; the oldest go where
 * there is no room. Gives whether it is kept.
 * @param {Kept} entry
 */
export function keep(entry, [tab, all] = stores()) {
  if (!entry.text || !tab) return false;
  const others = listed([tab, all]).filter(
    ({ id, text, notes }) => id !== entry.id && text !== entry.text && notes > 0,
  );
  for (let most = MOST - 1; ; most = Math.min(most, others.length) - 1) {
    try {
      all.setItem(ALL, JSON.stringify([entry, ...others.slice(0, most)]));
      tab.setItem(TAB, JSON.stringify(entry));
      return true;
    } catch {
      if (most <= 0) return false;
    }
  }
}

/**
 * The name of this tab, which a reload has again: each tab keeps what it changes as its own. Null: it
 * has none yet, or was duplicated, and another tab has it.
 */
export async function nameOfTab([tab] = stores()) {
  const name = read(tab, TAB)?.id?.split("/")[1];
  return name && (await take(name)) ? name : null;
}

export function newName() {
  const name = Math.random().toString(36).slice(2);
  take(name);
  return name;
}

/**
 * Takes a name for as long as the tab is open; gives false where another tab has it.
 * @param {string} name
 * @returns {Promise<boolean>}
 */
function take(name) {
  const { locks } = globalThis.navigator ?? {};
  if (!locks) return Promise.resolve(true); // without HTTPS, from another machine, there are none
  const signal = AbortSignal.timeout(RELOAD);
  return new Promise((done) =>
    locks
      .request(`${TAB}/${name}`, { signal }, () => {
        done(true);
        return new Promise(() => {});
      })
      .catch(() => done(false)),
  );
}

/**
 * What controls were set to, by their ids.
 * @returns {Record<string, unknown>}
 */
export const controls = ([, all] = stores()) => read(all, CONTROLS) ?? {};

/** @param {Record<string, unknown>} values */
export function keepControls(values, [, all] = stores()) {
  try {
    all?.setItem(CONTROLS, JSON.stringify(values));
  } catch {
    // there is no room: they are forgotten
  }
}
