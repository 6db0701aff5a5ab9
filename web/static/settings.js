// The controls of "What to ask for": read, filled, and told beside them what cannot be.
import { noteName } from "./piece.js";

const KEYS = ["C", "Db", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B"];
const MINORS = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "Bb", "B"];
const byId = (id) => document.getElementById(id);

const option = (value, text) =>
  Object.assign(document.createElement("option"), { value, textContent: text });

export class Settings {
  constructor(onChange, onTempo) {
    this.form = byId("settings");
    byId("s-key").append(
      option("", "any"),
      ...KEYS.map((k) => option(`${k} major`, `${k} major`)),
      ...MINORS.map((k) => option(`${k} minor`, `${k} minor`)),
    );
    this.form.addEventListener("input", () => {
      this.words();
      onChange();
    });
    byId("s-tempo").addEventListener("change", onTempo);
    this.form.addEventListener("submit", (event) => event.preventDefault());
  }

  // Offers what a model plays, and keeps what was chosen where that is possible.
  fit(plays) {
    const kept = this.saved(),
      bold = byId("s-bold");
    // a boldness that nobody has touched is the model's own
    if (kept["s-bold"] === String(this.plays?.temperature ?? bold.defaultValue))
      kept["s-bold"] = String(plays.temperature);
    this.plays = plays;
    const [low, high] = plays.pitches,
      pitches = [];
    for (let pitch = low; pitch <= high; pitch++) pitches.push(pitch);
    const meters = plays.grid === "seconds" ? [] : plays.meters;
    byId("s-meter").replaceChildren(
      option("", "any"),
      ...meters.map(([n, d]) => option(`${n}/${d}`, `${n}/${d}`)),
    );
    byId("s-low").replaceChildren(option("", "any"), ...pitches.map((p) => option(p, noteName(p))));
    byId("s-high").replaceChildren(
      option("", "any"),
      ...pitches.map((p) => option(p, noteName(p))),
    );
    byId("s-tempo").disabled = plays.grid === "seconds";
    byId("s-programs").replaceChildren(
      ...plays.programs.map(([program, name]) => {
        const label = document.createElement("label"),
          box = document.createElement("input");
        Object.assign(box, { type: "checkbox", value: program, checked: true });
        label.append(box, ` ${name}`);
        return label;
      }),
    );
    this.restore(kept);
  }

  saved() {
    const data = {};
    for (const id of [
      "s-bars",
      "s-bold",
      "s-key",
      "s-meter",
      "s-tempo",
      "s-low",
      "s-high",
      "s-polyphony",
      "s-counterpoint",
      "s-rests",
    ])
      data[id] = byId(id).value;
    data.off = [...byId("s-programs").querySelectorAll("input")]
      .filter((box) => !box.checked)
      .map((box) => Number(box.value));
    return data;
  }

  restore(data) {
    for (const [id, value] of Object.entries(data)) {
      if (!id.startsWith("s-") || !byId(id) || typeof value !== "string") continue;
      byId(id).value = value;
      if (byId(id).value !== value) byId(id).value = "";
    }
    for (const box of byId("s-programs").querySelectorAll("input"))
      box.checked = !(data.off || []).includes(Number(box.value));
    if (!byId("s-bars").value) byId("s-bars").value = 8;
    this.words();
  }

  // What the server understands.
  get() {
    const number = (id) => (byId(id).value === "" ? null : Number(byId(id).value));
    const boxes = [...byId("s-programs").querySelectorAll("input")],
      on = boxes.filter((box) => box.checked);
    const low = number("s-low"),
      high = number("s-high"),
      [lowest, highest] = this.plays.pitches;
    const meter = byId("s-meter").value;
    return {
      key: byId("s-key").value || null,
      meter: meter ? meter.split("/").map(Number) : null,
      tempo: byId("s-tempo").disabled ? null : number("s-tempo"),
      range: low === null && high === null ? null : [low ?? lowest, high ?? highest],
      polyphony: number("s-polyphony"),
      programs: on.length === boxes.length ? null : on.map((box) => Number(box.value)),
      counterpoint: byId("s-counterpoint").value || null,
      rests: byId("s-rests").value || null,
      bars: Math.min(32, Math.max(1, Math.round(number("s-bars") ?? 8))),
      temperature: number("s-bold"),
    };
  }

  words() {
    const bold = Number(byId("s-bold").value);
    byId("bold-words").textContent =
      bold === 0
        ? "always the likeliest note"
        : bold < 0.5
          ? "careful"
          : bold <= 0.85
            ? "balanced"
            : bold <= 1.05
              ? "bold"
              : "wild";
    if (!this.plays) return;
    const { key, meter, tempo, bars } = this.get();
    byId("ask-summary").textContent = [
      `${bars} bars`,
      byId("bold-words").textContent,
      key,
      meter?.join("/"),
      tempo && `${tempo} a minute`,
    ]
      .filter(Boolean)
      .join(" · ");
  }

  // Says beside its control, or returns false where there is none, why something cannot be.
  complain(control, message) {
    for (const place of this.form.querySelectorAll(".error"))
      place.textContent = place.dataset.control === control ? message : "";
    if (control && message) byId("ask").open = true;
    return Boolean(control && this.form.querySelector(`[data-control="${control}"]`));
  }
}
