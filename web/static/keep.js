// What is kept, and comes back: the session in the browser, in a link, and as files.
import { all, byId, field, make, reason, say, setHidden, setOff } from "./dom.js";
import { isDuet } from "./duet.js";
import { KEPT, LINK, said, textOf } from "./link.js";
import { chooseModel } from "./models.js";
import { current, model, on, page, session, settings, tell } from "./page.js";
import { post } from "./server.js";
import { inWords } from "./piece.js";
import { roll, selectedPiece, selectedWords } from "./stage.js";
import { Session } from "./session.js";
import { keep, kept, listed, nameOfTab, newName } from "./store.js";

/**
 * @import { State } from "./session.js"
 */

/** @type {State | undefined} the state that is kept, or is being kept */
let latest;
let text = ""; // that is kept
let tab = newName();
const IN_DUET = 5000; // milliseconds: to keep a long session takes a tenth of a second
let later = 0;
let isBusy = false;
/** @type {{ id: string, as: Session }[]} as they are to be kept, of each name the latest */
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
 * The name under which a session is kept.
 * @param {State} state
 */
const idOf = ({ tune }) => `${tune}/${tab}`;

/** Keeps the session as it has become; a link in the address is of another one now. */
async function keepSoon() {
  clearTimeout(later);
  later = 0;
  const { now } = session;
  if (!now || page.writing) return;
  if (location.hash) history.replaceState(null, "", location.pathname);
  latest = now;
  const id = idOf(now);
  if (waiting.at(-1)?.id === id) waiting.pop();
  waiting.push({ id, as: session.copy() });
  if (isBusy) return;
  isBusy = true;
  for (let next = waiting.shift(); next?.as.now; next = waiting.shift()) {
    const { piece } = next.as.now;
    text = await textOf(next.as, around(), KEPT);
    const about = { when: Date.now(), notes: piece.notes.length, about: inWords(piece) };
    setHidden(byId("is-kept"), !keep({ id: next.id, ...about, text }));
  }
  isBusy = false;
  setHidden(byId("is-not-kept"), !byId("is-kept").hidden);
  list();
}

/** Whether what there is has been kept. */
export const isKept = () => !isBusy && latest === session.now;

const linked = () => location.hash.match(/^#s=([\w-]+)$/)?.[1];

/** Brings back what a link in the address holds, or what this browser has kept. */
export async function restore() {
  const link = linked();
  text = link ?? kept()?.text ?? "";
  if (!text) return;
  if (!link) tab = (await nameOfTab()) ?? tab; // else what was kept of the same tune stays beside it
  try {
    await bringBack(await said(text, link ? LINK : KEPT));
    if (link) say("The session is as it was when the link was made.");
    else if (current()?.notes.length)
      say("Your music is as you left it. New starts an empty page.");
    list();
  } catch {
    sayDamaged(link ? "link in the address" : "session that was kept here");
  }
}

/** @param {string} what */
const sayDamaged = (what) => say(`The ${what} is damaged and cannot be opened.`, true);

/** Lists the latest sessions, but for the one that is shown. */
function list() {
  const id = session.now && idOf(session.now);
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

/**
 * Keeps what there is, and goes over to another session: one that is not this tab's own is kept
 * under a new name, since this tab may have kept something else of the same tune.
 * @param {any} data
 * @param {boolean} isOwn
 */
async function goOver(data, isOwn) {
  tell("settle");
  await keepSoon();
  page.cursor = 0;
  roll.selection = null;
  if (!isOwn) tab = newName();
  await bringBack(data);
  await keepSoon();
}

/** @param {string} id */
async function open(id) {
  const entry = listed().find((each) => each.id === id);
  if (!entry) return;
  try {
    await goOver(await said(entry.text, KEPT), id.endsWith(`/${tab}`));
    say(`${entry.about}. What you had here is now under Earlier.`);
  } catch {
    sayDamaged("session");
  }
}

/** Opens a link that was put into the address of a page that is open. */
async function openLink() {
  const link = linked();
  if (!link) return;
  try {
    await goOver(await said(link, LINK), false);
    say("The session is as it was when the link was made.");
  } catch {
    sayDamaged("link in the address");
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
addEventListener("hashchange", openLink);
for (const button of all("[data-file]"))
  button.addEventListener("click", () => {
    takeAway(button.dataset.file ?? "", button.dataset.name ?? "");
  });
