// The elements of the page: found, made, and told what to show.

/** @param {string} id */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`there is no #${id}`);
  return element;
}

/**
 * A field or a button of the page.
 * @param {string} id
 */
export const field = (id) => /** @type {HTMLInputElement & HTMLSelectElement} */ (byId(id));

/**
 * All elements that a selector finds.
 * @param {string} selector
 */
export const all = (selector) =>
  /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll(selector));

/**
 * A new element.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, unknown>} properties
 * @param {(Node | string)[]} children
 */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/**
 * Says something in the line of the page's state.
 * @param {string} text
 */
export function say(text, isBad = false) {
  byId("status").textContent = text;
  byId("status").classList.toggle("bad", isBad);
}

/**
 * Sets a text where it is another: what is new is laid out.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Makes a button one that cannot be pressed, or one that can. Its focus goes to the roll then.
 * @param {HTMLElement & { disabled: boolean }} button
 * @param {boolean} isOff
 */
export function setOff(button, isOff) {
  if (isOff) leave(button);
  button.disabled = isOff;
}

/**
 * Hides an element, or shows it. A focus in it goes to the roll.
 * @param {HTMLElement} element
 * @param {boolean} isHidden
 */
export function setHidden(element, isHidden) {
  if (isHidden) leave(element);
  element.hidden = isHidden;
}

/** @param {string} id of a button that is on or off */
export const isOn = (id) => byId(id).getAttribute("aria-pressed") === "true";

/**
 * Turns a button on or off.
 * @param {string} id
 */
export const turn = (id, on = !isOn(id)) => byId(id).setAttribute("aria-pressed", String(on));

/** @param {HTMLElement} element */
function leave(element) {
  if (element.contains(document.activeElement)) byId("roll").focus({ preventScroll: true });
}

/** @param {unknown} error */
export const reason = (error) => (error instanceof Error ? error.message : String(error));
