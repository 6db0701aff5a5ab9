// The session as the browser keeps it: in the tab, which has it after a reload, and for the next one.
const NAME = "etude.session";

function stores() {
  try {
    return [sessionStorage, localStorage];
  } catch {
    return []; // the browser keeps nothing of this page
  }
}

/** The text that was kept last, of this tab or else of any. */
export function kept() {
  for (const store of stores()) {
    const text = store.getItem(NAME);
    if (text) return text;
  }
  return null;
}

/**
 * Keeps a text; gives whether it is kept.
 * @param {string} text
 */
export function keep(text) {
  try {
    for (const store of stores()) store.setItem(NAME, text);
    return Boolean(text) && stores().length > 0;
  } catch {
    return false;
  }
}
