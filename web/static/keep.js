// What is kept, and comes back: the session in the browser, in a link, and as files.
import { all, byId, field, make, reason, say, setHidden, setOff } from "./dom.js";
import { isDuet } from "./duet.js";
import { KEPT, LINK, said, textOf } from "./link.js";
import { chooseModel } from "./models.js";
import { current, model, on, page, session, settings, tell } from "./page.js";
import { post } from "./server.js";
import { inWords } from "./piece.js";
import { selectedPiece, selectedWords } from "./stage.js";
import { Session } from "./session.js";
import { keep, kept, listed, nameOfTab } from "./store.js";

/**
 * @import { State } from "./session.js"
 * @import { Kept } from "./store.js"
 */

/** @type {State | undefined} the state that is kept, or is being kept */
let latest;
let text = ""; // that is kept
const tab = nameOfTab();
const IN_DUET = 5000; // milliseconds: to keep a long session takes a tenth of a second
let later = 0;
let isBusy = false;
/** @type {Session[]} as they are to be kept, of each tune the latest */
const waiting = [];

/** What is kept besides the session's states. */
const around = () => ({
  v: 2,
  model: model(),
  settings: settings.saved(),
  seed: page.seed,
  text: field("text").value,
});

/**
 * The session as the browser keeps it.
 * @param {State} state
 * @param {string} text
 * @returns {Kept}
 */
const entryOf = ({ tune, piece }, text) => ({
  id: `${tune}/${tab}`,
  when: Date.now(),
  notes: piece.notes.length,
  about: inWords(piece),
  text,
});

/** Keeps the session as it has become; a link in the address is of another one now. */
async function keepSoon() {
  clearTimeout(later);
  later = 0;
  const { now } = session;
  if (!now || page.writing) return;
  if (location.hash) history.replaceState(null, "", location.pathname);
  latest = now;
  if (waiting.at(-1)?.now?.tune === now.tune) waiting.pop();
  waiting.push(session.copy());
  if (isBusy) return;
  isBusy = true;
  for (let next = waiting.shift(); next?.now; next = waiting.shift()) {
    text = await textOf(next, around(), KEPT);
    setHidden(byId("is-kept"), !keep(entryOf(next.now, text)));
  }
  isBusy = false;
  setHidden(byId("is-not-kept"), !byId("is-kept").hidden);
  list();
}

/** Whether what there is has been kept. */
export const isKept = () => !isBusy && latest === session.now;

/** Brings back what a link in the address holds, or what this browser has kept. */
export async function restore() {
  const link = location.hash.match(/^#s=([\w-]+)$/)?.[1];
  text = link ?? kept()?.text ?? "";
  if (!text) return;
  try {
    await bringBack(await said(text, link ? LINK : KEPT));
    if (link) say("The session is as it was when the link was made.");
    else if (current()?.notes.length)
      say("Your music is as you left it. New starts an empty page.");
    list();
  } catch {
    const what = link ? "link in the address" : "session that was kept here";
    say(`The ${what} is damaged and cannot be opened.`, true);
  }
}

/** Lists the latest sessions, but for the one that is shown. */
function list() {
  const id = session.now && entryOf(session.now, "").id;
  const others = listed().filter(
    (entry) => entry.notes > 0 && entry.id !== id && entry.text !== text,
  );
  field("latest").replaceChildren(
    make("option", { value: "" }, "Earlier"),
    ...others.map(({ id, about, when }) =>
      make("option", { value: id }, `${about}, ${new Date(when).toLocaleString()}`),
    ),
  );
  setOff(field("latest"), !others.length);
}

/** @param {string} id */
async function open(id) {
  const entry = listed().find((each) => each.id === id);
  if (!entry) return;
  tell("settle");
  await keepSoon();
  try {
    page.cursor = 0;
    await bringBack(await said(entry.text, KEPT));
    await keepSoon();
    say(`${entry.about}. What you had here is now under Earlier.`);
  } catch {
    say("That session is damaged and cannot be opened.", true);
  }
}

/** @param {any} data */
async function bringBack(data) {
  const brought = new Session();
  brought.unpack(data);
  if ([...field("model").options].some(({ value }) => value === data.model))
    field("model").value = data.model;
  await chooseModel();
  Object.assign(session, brought); // and shown before anybody can ask for it
  latest = session.now;
  settings.restore(data.settings ?? {});
  field("text").value = String(data.text ?? "").slice(0, 4000);
  if (Number.isInteger(data.seed) && data.seed >= 0) page.seed = data.seed;
  tell("show");
}

async function copyLink() {
  const text = await textOf(session, around(), LINK);
  if (!text) return say("This piece is too long for a link: save the .mid instead.", true);
  history.replaceState(null, "", `#s=${text}`);
  latest = session.now;
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is on the clipboard, and in the address bar.");
  } catch {
    say("The link is in the address bar: copy it from there.");
  }
}

/**
 * @param {string} kind
 * @param {string} name
 */
async function takeAway(kind, name) {
  say(`Making ${name} …`);
  try {
    const response = await post(`/${kind}`, JSON.stringify({ piece: selectedPiece() }));
    const href = URL.createObjectURL(await response.blob());
    make("a", { href, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60000);
    const which = selectedWords();
    say(`${name} is in your downloads${which && ` (${which})`}.`);
  } catch (error) {
    say(reason(error), true);
  }
}

on("show", () => {
  if (session.now === latest) return;
  if (isDuet()) later ||= setTimeout(keepSoon, IN_DUET);
  else keepSoon();
});
on("asked", keepSoon);
byId("text").addEventListener("input", keepSoon);
byId("copy-link").addEventListener("click", copyLink);
field("latest").addEventListener("change", () => open(field("latest").value));
field("latest").addEventListener("pointerdown", list);
for (const button of all("[data-file]"))
  button.addEventListener("click", () => {
    takeAway(button.dataset.file ?? "", button.dataset.name ?? "");
  });
