// The controls of "What to ask for": read, filled, and told beside them what cannot be.
import { all, byId, field, make } from "./dom.js";
import { counted, noteName } from "./piece.js";

/**
 * @import { Meter, Plays } from "./piece.js"
 *
 * What the server understands.
 * @typedef {{ key: string | null, meter: Meter | null, tempo: number | null,
 *   range: [low: number, high: number] | null, polyphony: number | null,
 *   programs: number[] | null, counterpoint: string | null, rests: string | null,
 *   cadence: string | null, busy: number | null, bars: number, temperature: number | null }} Asked
 */

export const MOST_BARS = 32; // that are written at once
const KEYS = ["C", "Db", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B"];
const MINORS = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "Bb", "B"];
const SAVED = ["bars", "bold", "key", "meter", "tempo", "low", "high", "polyphony", "counterpoint"]
  .concat("rests", "cadence", "busy")
  .map((name) => `s-${name}`);
const BOLDNESS = /** @type {const} */ ([
  [0, "always the likeliest note"],
  [0.49, "careful"],
  [0.85, "balanced"],
  [1.05, "bold"],
  [Infinity, "wild"],
]);

/**
 * @param {string | number} value
 * @param {string} text
 */
const option = (value, text) => make("option", { value: String(value), textContent: text });

const programs = () => [...all("#s-programs input")];

export class Settings {
  /**
   * @param {() => void} onChange
   * @param {() => void} onTempo
   */
  constructor(onChange, onTempo) {
    /** @type {Plays | null} */
    this.plays = null;
    field("s-key").append(
      option("", "any"),
      ...KEYS.map((key) => option(`${key} major`, `${key} major`)),
      ...MINORS.map((key) => option(`${key} minor`, `${key} minor`)),
    );
    for (const form of all("#settings, #tempo-form")) {
      form.addEventListener("input", () => {
        this.words();
        onChange();
      });
      form.addEventListener("submit", (event) => event.preventDefault());
    }
    field("s-tempo").addEventListener("change", onTempo);
    field("s-bars").addEventListener(
      "change",
      () => (field("s-bars").value = `${this.get().bars}`),
    );
  }

  /**
   * Offers what a model plays, and keeps what was chosen where that is possible.
   * @param {Plays} plays
   */
  fit(plays) {
    const kept = this.saved();
    // a boldness that nobody has touched is the model's own
    if (kept["s-bold"] === String(this.plays?.temperature ?? field("s-bold").defaultValue))
      kept["s-bold"] = String(plays.temperature);
    this.plays = plays;
    const [low, high] = plays.pitches;
    const meters = plays.grid === "seconds" ? [] : plays.meters.map((meter) => meter.join("/"));
    field("s-meter").replaceChildren(option("", "any"), ...meters.map((its) => option(its, its)));
    for (const id of ["s-low", "s-high"]) {
      field(id).replaceChildren(option("", "any"));
      for (let pitch = low; pitch <= high; pitch++)
        field(id).append(option(pitch, noteName(pitch)));
    }
    field("s-tempo").disabled = plays.grid === "seconds";
    byId("s-programs").replaceChildren(
      ...plays.programs.map(([program, name]) => {
        const box = make("input", { type: "checkbox", value: String(program), checked: true });
        return make("label", {}, box, ` ${name}`);
      }),
    );
    this.restore(kept);
  }

  /** What was chosen, as a link has it. */
  saved() {
    /** @type {Record<string, any>} */
    const data = Object.fromEntries(SAVED.map((id) => [id, field(id).value]));
    data.off = programs()
      .filter((box) => !box.checked)
      .map((box) => Number(box.value));
    return data;
  }

  /** @param {Record<string, any>} data */
  restore(data) {
    for (const id of SAVED) {
      if (typeof data[id] !== "string") continue;
      field(id).value = data[id];
      if (field(id).value !== data[id]) field(id).value = "";
    }
    for (const box of programs()) box.checked = !(data.off ?? []).includes(Number(box.value));
    field("s-bars").value ||= "8";
    this.words();
  }

  /** @param {string} id of a control that asks for nothing any more */
  forget(id) {
    field(id).value = "";
    this.words();
  }

  /** @returns {Asked} */
  get() {
    /** @param {string} id */
    const number = (id) => (field(id).value === "" ? null : Number(field(id).value));
    const on = programs().filter((box) => box.checked);
    const [low, high] = [number("s-low"), number("s-high")];
    const [lowest, highest] = this.plays?.pitches ?? [0, 127];
    const [numerator, denominator] = field("s-meter").value.split("/").map(Number);
    return {
      key: field("s-key").value || null,
      meter: denominator ? [numerator, denominator] : null,
      tempo: field("s-tempo").disabled ? null : number("s-tempo"),
      range: low === null && high === null ? null : [low ?? lowest, high ?? highest],
      polyphony: number("s-polyphony"),
      programs: on.length === programs().length ? null : on.map((box) => Number(box.value)),
      counterpoint: field("s-counterpoint").value || null,
      rests: field("s-rests").value || null,
      cadence: field("s-cadence").value || null,
      busy: number("s-busy"),
      bars: Math.min(MOST_BARS, Math.max(1, Math.round(number("s-bars") ?? 8))),
      temperature: number("s-bold"),
    };
  }

  /** Says in words what is chosen. */
  words() {
    const bold = Number(field("s-bold").value);
    const word = BOLDNESS.find(([most]) => bold <= most)?.[1] ?? "";
    byId("bold-words").textContent = word;
    if (!this.plays) return;
    const { key, meter, tempo, bars } = this.get();
    byId("ask-summary").textContent = [
      counted(bars, "bar"),
      word,
      key,
      meter?.join("/"),
      tempo && `♩ = ${tempo}`,
    ]
      .filter(Boolean)
      .join(" · ");
  }

  /**
   * Says beside its control, or returns false where there is none, why something cannot be.
   * @param {string | null} control
   * @param {string} message
   */
  complain(control, message) {
    let isSaid = false;
    for (const place of all("[data-control]")) {
      const isHere = place.dataset.control === control;
      place.textContent = isHere ? message : "";
      isSaid ||= isHere;
      if (isHere && message && byId("settings").contains(place))
        /** @type {HTMLDetailsElement} */ (byId("ask")).open = true;
    }
    return isSaid;
  }
}
