// Controls that stay as a person sets them, in each session of this browser.
import { all, isOn } from "./dom.js";
import { controls, keepControls } from "./store.js";

const kept = [...all("[data-kept]")];
const isButton = (/** @type {Element} */ control) => control.matches("button");

/** @type {Record<string, unknown>} what they were set to, by their ids */
const known = controls();
for (const control of kept) {
  const { id, value: usual } = control;
  if (isButton(control)) {
    if (known[id] === !isOn(id)) control.click();
  } else if (typeof known[id] === "string") {
    control.value = known[id];
    if (control.value !== known[id]) control.value = usual;
    control.dispatchEvent(new Event("input"));
  }
  control.addEventListener(isButton(control) ? "click" : "change", () =>
    keepControls(
      Object.fromEntries(
        kept.map((each) => [each.id, isButton(each) ? isOn(each.id) : each.value]),
      ),
    ),
  );
}
