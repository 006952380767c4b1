/**
 * The page's state in one place, and who wants to know when it changes. Everything about the kernel in it comes from the mirror; the rest
 * (what is open, what is typed, which language) is this page's own.
 */
/** @import { Form, PageState } from "./types.d.ts" */
import { useEffect, useState } from "./vendor/htm-preact.js";

/** @type {Form} */
export const EMPTY_FORM = { values: {}, chosen: [], errors: {}, trouble: "", isSent: false, saved: "" };

/** @returns {PageState} */
export function firstState() {
  return {
    link: "connecting",
    phase: "connecting",
    code: "",
    hint: "",
    links: 0,
    isDemo: false,
    isExposed: false,
    viewId: "",
    answered: new Map(),
    line: "",
    isStuck: false,
    mirror: null,
    hasOlder: true,
    isLoadingOlder: false,
    past: null,
    outgoing: [],
    toasts: [],
    panel: "",
    failedApp: "",
    putOff: new Set(),
    wanted: "",
    forms: new Map(),
    sessions: [],
    parked: [],
    lang: "en",
    theme: "auto",
    why: null,
    log: null,
  };
}

export class Store {
  /** @param {PageState} state */
  constructor(state) {
    this.state = state;
    /** @type {Set<() => void>} */
    this.listeners = new Set();
  }

  /** @param {Partial<PageState>} change */
  set(change) {
    this.state = { ...this.state, ...change };
    for (const tell of this.listeners) tell();
  }

  /** @param {string} id @param {Partial<Form>} change */
  setForm(id, change) {
    const forms = new Map(this.state.forms);
    forms.set(id, { ...(forms.get(id) ?? EMPTY_FORM), ...change });
    this.set({ forms });
  }
}

/** The state, and a new drawing whenever it changes. @param {Store} store @returns {PageState} */
export function useStore(store) {
  const [, draw] = useState(0);
  useEffect(() => {
    const tell = () => draw((count) => count + 1);
    store.listeners.add(tell);
    return () => {
      store.listeners.delete(tell);
    };
  }, [store]);
  return store.state;
}
