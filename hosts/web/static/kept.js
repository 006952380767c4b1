/**
 * What the browser keeps for the page: of this tab, or of every tab. Never what is typed: a browser writes all of it to its disk, and an
 * unsent draft is in memory alone. One that keeps nothing (site data blocked, or full) is no reason to show nothing: then this page
 * alone remembers.
 */

/** @param {() => Storage} store which may refuse already to be looked at */
function keeper(store) {
  /** @type {Map<string, string>} */
  const here = new Map();
  return {
    /** @param {string} name @returns {string | null} */
    get(name) {
      return here.get(name) ?? tried(() => store().getItem(name)) ?? null;
    },
    /** @param {string} name @param {string} text */
    set(name, text) {
      here.set(name, text);
      tried(() => store().setItem(name, text));
    },
  };
}

/** @template T @param {() => T} run @returns {T | null} */
function tried(run) {
  try {
    return run();
  } catch (refused) {
    if (refused instanceof DOMException) return null;
    throw refused;
  }
}

export const ofTab = keeper(() => sessionStorage);
export const ofBrowser = keeper(() => localStorage);
