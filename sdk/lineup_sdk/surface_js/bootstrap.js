"use strict";
// The first lines of every isolated surface: they run before the App's own script, in one element with it and under one digest, so
// that no frame of the App, nested ones included, runs anything without them. An author uses `lineup.surface` (lineup-surface.d.ts).
//
// Rules:
// 1. What could reach a network past the Content-Security-Policy is taken away before anything else runs, by syntax alone: functions that
//    the App's script declares at its top level exist already here, so no global name (self, Object ...) can be relied on.
// 2. One port to the page, given once by the parent window as the answer to our hello; whoever else posts is not heard.
// 3. Text up and down, one JSON object each. Up: patch, event, pong, left. Down: state, patched, ok, no, ping, look, leave.
// 4. What is shown = what the kernel confirmed + own patches on their way, in order. A refused one is taken back.
/// <reference path="lineup-surface.d.ts" />
{
  const world = /** @type {{ [name: string]: unknown }} */ (this);
  delete world.RTCPeerConnection;
  delete world.webkitRTCPeerConnection;
  delete world.RTCDataChannel;
  delete world.RTCIceTransport;
  delete world.WebTransport;
}

(() => {
  /** @typedef {{ t: "state", state: LineupState, version: number }} StateCame */
  /** @typedef {{ t: "patched", patch: LineupState, version: number }} Patched */
  /** @typedef {{ t: "ok", n: number, version: number }} Taken */
  /** @typedef {{ t: "no", n: number, code: string, detail?: LineupState }} Refused */
  /** @typedef {{ t: "ping", n: number }} Ping */
  /** @typedef {{ t: "look" } & LineupLook} LookCame */
  /** @typedef {{ t: "leave" }} Leave */
  /** @typedef {{ resolve: (version: number) => void, reject: (why: Error) => void, patch?: LineupState }} Asked */

  /** RFC 7396; copies what it changes and shares the rest. @param {LineupState} target @param {LineupState} patch */
  const merged = (target, patch) => {
    const result = { ...target };
    for (const [name, one] of Object.entries(patch)) {
      const before = result[name];
      const value = isObject(one) ? merged(isObject(before) ? before : {}, one) : one;
      if (one === null) delete result[name];
      else Object.defineProperty(result, name, { value, writable: true, enumerable: true, configurable: true }); // also for __proto__
    }
    return result;
  };
  /** @param {LineupJson | undefined} value @returns {value is LineupState} */
  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

  class SurfaceRefused extends Error {
    /** @param {string} code @param {LineupState} [detail] */
    constructor(code, detail) {
      super(code);
      this.name = "SurfaceRefused";
      this.code = code;
      this.detail = detail;
    }
  }

  /** @type {MessagePort | null} */
  let port = null;
  /** @type {string[]} Texts said before the port came. */
  const outbox = [];
  /** @type {Map<number, Asked>} By our number, in the order they were sent. */
  const waiting = new Map();
  let lastNumber = 0;
  /** @type {LineupState | null} The state as the kernel has it, or null before it came. */
  let confirmed = null;
  /** @type {LineupState | null} With our own patches on their way. */
  let shown = null;
  let version = 0;
  /** @type {((state: LineupState, info: LineupStateInfo) => void)[]} */
  const stateListeners = [];
  /** @type {((look: LineupLook) => void)[]} */
  const lookListeners = [];
  /** @type {(() => void)[]} */
  const leaveListeners = [];
  /** @type {LineupLook} */
  let look = { theme: "light", lang: "en" };

  /** @param {{ t: string, [name: string]: LineupJson }} message */
  const say = (message) => {
    const text = JSON.stringify(message);
    if (port) port.postMessage(text);
    else outbox.push(text);
  };
  /** @param {{ t: string, [name: string]: LineupJson }} message @param {LineupState} [patch] @returns {Promise<number>} */
  const ask = (message, patch) =>
    new Promise((resolve, reject) => {
      lastNumber += 1;
      waiting.set(lastNumber, { resolve, reject, patch });
      say({ ...message, n: lastNumber });
    });
  /** @param {number} number */
  const answered = (number) => {
    const asked = waiting.get(number);
    waiting.delete(number);
    return asked;
  };
  /** @param {LineupState} state */
  const withOwn = (state) => [...waiting.values()].reduce((sum, { patch }) => (patch ? merged(sum, patch) : sum), state);
  /** @param {LineupState | null} patch @param {boolean} isOwn */
  const tellState = (patch, isOwn) => {
    for (const listener of stateListeners) if (shown !== null) listener(shown, { version, patch, isOwn });
  };
  /** @param {LineupState} state @param {LineupState | null} patch */
  const confirm = (state, patch) => {
    confirmed = state;
    shown = withOwn(state);
    tellState(patch, false);
  };

  const take = {
    /** @param {StateCame} message */
    state: (message) => {
      version = message.version;
      confirm(message.state, null);
    },
    /** @param {Patched} message */
    patched: (message) => {
      version = message.version;
      confirm(merged(confirmed ?? {}, message.patch), message.patch);
    },
    /** @param {Taken} message */
    ok: (message) => {
      const asked = answered(message.n);
      if (asked?.patch) {
        confirmed = merged(confirmed ?? {}, asked.patch);
        version = message.version;
      }
      asked?.resolve(version);
    },
    /** @param {Refused} message */
    no: (message) => {
      const asked = answered(message.n);
      if (asked?.patch && confirmed !== null) confirm(confirmed, null);
      asked?.reject(new SurfaceRefused(message.code, message.detail));
    },
    /** @param {Ping} message */
    ping: (message) => say({ t: "pong", n: message.n }),
    /** @param {LookCame} message */
    look: (message) => {
      look = { theme: message.theme, lang: message.lang };
      document.documentElement.lang = look.lang;
      document.documentElement.dataset.theme = look.theme;
      document.documentElement.style.colorScheme = look.theme;
      for (const listener of lookListeners) listener(look);
    },
    leave: () => {
      for (const listener of leaveListeners) listener();
      say({ t: "left" });
    },
  };

  addEventListener("message", function onPort(event) {
    if (event.source !== parent || event.data?.lineup !== "port" || event.ports.length !== 1) return;
    removeEventListener("message", onPort);
    const given = event.ports[0];
    port = given;
    given.onmessage = ({ data }) => {
      /** @type {StateCame | Patched | Taken | Refused | Ping | LookCame | Leave} */
      const message = JSON.parse(data);
      take[message.t](/** @type {never} */ (message)); // the checker does not see that a message meets its own function
    };
    for (const text of outbox.splice(0)) given.postMessage(text);
  });

  /** @type {LineupSurface} */
  const surface = {
    onState(listener) {
      stateListeners.push(listener);
      if (shown !== null) listener(shown, { version, patch: null, isOwn: false });
    },
    patch(change) {
      const patch = JSON.parse(JSON.stringify(change)); // what is sent, whatever the author does with the object later
      const answer = ask({ t: "patch", patch }, patch);
      shown = merged(shown ?? {}, patch);
      tellState(patch, true);
      return answer;
    },
    async event(name, body = {}) {
      await ask({ t: "event", name, body });
    },
    onLook(listener) {
      lookListeners.push(listener);
      listener(look);
    },
    onLeave(listener) {
      leaveListeners.push(listener);
    },
    inLanguage: (words) => words[look.lang] ?? words.en,
    get theme() {
      return look.theme;
    },
    get lang() {
      return look.lang;
    },
  };
  Object.defineProperty(window, "lineup", { value: Object.freeze({ surface: Object.freeze(surface) }) });
  parent.postMessage({ lineup: "hello", mount: document.documentElement.dataset.mount }, "*");
})();
