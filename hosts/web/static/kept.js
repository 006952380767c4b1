/**
 * What the browser keeps for the page: of this tab, or of every tab. Never what is typed: a browser writes all of it to its disk, and an
 * unsent draft is in memory alone. One that keeps nothing (site data blocked, or full) is no reason to show nothing: then this page
 * alone remembers.
 */

const KEPT_TAB = "lineup.tab";
const NAME_FREE_MS = 500; // a document that is reloaded lets its name go a moment later

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

/**
 * The name of this tab, the same after a reload. What a browser keeps of a tab it copies into a duplicate, where the name is held by the
 * first one: the duplicate takes another, or each would be given what is typed in the other. @returns {Promise<string>}
 */
export async function nameOfTab() {
  const kept = ofTab.get(KEPT_TAB);
  if (kept !== null && (await hold(kept))) return kept;
  const name = [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join("-");
  ofTab.set(KEPT_TAB, name);
  void hold(name);
  return name;
}

/** Hold a name as long as this document lives; false when another one does. @param {string} name @returns {Promise<boolean>} */
function hold(name) {
  if (!("locks" in navigator)) return Promise.resolve(true); // over plain HTTP from another machine
  return new Promise((tell) => {
    const held = () => {
      tell(true);
      return new Promise(() => {});
    };
    navigator.locks.request(`lineup.tab.${name}`, { signal: AbortSignal.timeout(NAME_FREE_MS) }, held).catch(() => tell(false));
  });
}
