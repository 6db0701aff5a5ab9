// The models: which there are, and what the chosen one plays.
import { byId, field, make, say, setHidden, setText } from "./dom.js";
import { server } from "./connection.js";
import { instruments, model, on, page, settings, sound, tell } from "./page.js";
import { roll } from "./stage.js";

/** @import { Plays } from "./piece.js" */

/** Whether the first sounds are there, whether the model is warm, and what was fetched until then. */
export const loaded = { hasSound: false, isWarm: false, bytes: 0 };

const SOON = 1500; // milliseconds: a model that takes longer to make ready is compiled
const COMPILING = "The model is being compiled, only once on this machine: about twenty seconds …";
let waiting = 0;

/** Bytes of all that the page has fetched. */
const fetched = () =>
  performance
    .getEntriesByType("resource")
    .reduce((sum, entry) => sum + /** @type {PerformanceResourceTiming} */ (entry).transferSize, 0);

async function listNames() {
  const { models, files } = await (await fetch("/models")).json();
  field("file").accept = files.join();
  const was = model();
  field("model").replaceChildren(
    ...models.map((/** @type {string} */ name) =>
      make("option", { value: name, textContent: name.replace("/model.safetensors", "") }),
    ),
  );
  if (models.includes(was)) field("model").value = was;
}

/** Lists the models, and makes the chosen one ready. Throws where the server is gone. */
export async function listModels() {
  try {
    await listNames();
    await chooseModel();
  } catch {
    setHidden(byId("gone"), false);
  }
}

/** @returns {Promise<void>} */
export function chooseModel() {
  clearTimeout(waiting);
  waiting = setTimeout(() => say(COMPILING), SOON);
  return new Promise((done) =>
    server.ask("describe", { model: model() }, (told) => {
      if (told.plays) fit(told.plays);
      if (told.ready || told.error) clearTimeout(waiting);
      if (told.ready) warmed();
      if (told.error) say(told.error, true);
      if (told.plays || told.error) done();
    }),
  );
}

/** Whether the page says that a model is being compiled, for which all else waits. */
export const isCompiling = () => byId("status").textContent === COMPILING;

function warmed() {
  loaded.isWarm = true;
  if (isCompiling()) say("The model is ready.");
}

/** @param {Plays} plays */
function fit(plays) {
  const wasTune = page.plays?.tune;
  page.plays = plays;
  roll.programs = plays.programs.map(([program]) => program);
  roll.drums = plays.drums;
  const was = field("voice").value;
  field("voice").replaceChildren(
    ...plays.programs.map(([program, name]) =>
      make("option", { value: String(program), textContent: name }),
    ),
  );
  const isThere = plays.programs.some(([program]) => String(program) === was);
  const isChosen = isThere && was !== String(wasTune);
  const voice = isChosen ? was : plays.tune;
  if (voice !== null) field("voice").value = String(voice);
  settings.fit(plays);
  sound.prepare(plays.programs.map(([part, , midi, range]) => [part, midi, range])).then(() => {
    loaded.hasSound = true;
    loaded.bytes ||= fetched();
  });
  tell("show");
}

on("show", () => {
  sound.midi = instruments();
  const steps = page.plays?.trained;
  const about = steps ? `after ${steps.toLocaleString("en")} steps of training` : "";
  setText(byId("model-about"), about);
});
field("model").addEventListener("change", () => {
  tell("settle");
  chooseModel();
});
field("model").addEventListener("focus", () => listNames().catch(() => {}));
