"use strict";
// The first lines of every isolated surface: they run before the App's own script, in one element with it and under one digest, so
// that no frame of the App, nested ones included, runs anything without them. An author uses `lineup.surface` (lineup-surface.d.ts).
//
// Rules:
// 1. What could reach a network past the Content-Security-Policy is taken away before anything else runs, by syntax alone: functions that
//    the App's script declares at its top level exist already here, so no global name (self, Object ...) can be relied on.
// 2. One port to the page, given once by the parent window as the answer to our hello; whoever else posts is not heard.
// 3. Text up and down, one JSON object each. Up: patch, event, pong. Down: state, patched, ok, no, ping, look.
// 4. What is shown = what the kernel confirmed + own patches on their way, in order. A refused one is taken back.
delete this.RTCPeerConnection;
delete this.webkitRTCPeerConnection;
delete this.RTCDataChannel;
delete this.RTCIceTransport;
delete this.WebTransport;

(() => {
  /** RFC 7396; copies what it changes and shares the rest. */
  const merged = (target, patch) => {
    if (!isObject(patch)) return patch;
    const result = isObject(target) ? { ...target } : {};
    for (const [name, one] of Object.entries(patch)) {
      const value = one === null ? null : merged(result[name], one);
      if (one === null) delete result[name];
      else Object.defineProperty(result, name, { value, writable: true, enumerable: true, configurable: true }); // also for __proto__
    }
    return result;
  };
  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

  class SurfaceRefused extends Error {
    constructor(code, detail) {
      super(code);
      this.name = "SurfaceRefused";
      this.code = code;
      this.detail = detail;
    }
  }

  let port = null;
  const outbox = []; // texts said before the port came
  const waiting = new Map(); // our number -> {resolve, reject, patch?}, in the order they were sent
  let lastNumber = 0;
  let confirmed = null; // the state as the kernel has it, or null before it came
  let shown = null; // with our own patches on their way
  let version = 0;
  const stateListeners = [];
  const lookListeners = [];
  const look = { theme: "light", lang: "en" };

  const say = (message) => {
    const text = JSON.stringify(message);
    if (port) port.postMessage(text);
    else outbox.push(text);
  };
  const ask = (message, patch) =>
    new Promise((resolve, reject) => {
      lastNumber += 1;
      waiting.set(lastNumber, { resolve, reject, patch });
      say({ ...message, n: lastNumber });
    });
  const withOwn = () => [...waiting.values()].reduce((state, { patch }) => (patch ? merged(state, patch) : state), confirmed);
  const tellState = (patch, isOwn) => {
    for (const listener of stateListeners) listener(shown, { version, patch, isOwn });
  };

  const take = {
    state: (message) => {
      confirmed = message.state;
      version = message.version;
      shown = withOwn();
      tellState(null, false);
    },
    patched: (message) => {
      confirmed = merged(confirmed, message.patch);
      version = message.version;
      shown = withOwn();
      tellState(message.patch, false);
    },
    ok: (message) => {
      const { resolve, patch } = waiting.get(message.n);
      waiting.delete(message.n);
      if (patch) {
        confirmed = merged(confirmed, patch);
        version = message.version;
      }
      resolve(patch ? version : undefined);
    },
    no: (message) => {
      const { reject, patch } = waiting.get(message.n);
      waiting.delete(message.n);
      if (patch && confirmed !== null) {
        shown = withOwn();
        tellState(null, false);
      }
      reject(new SurfaceRefused(message.code, message.detail));
    },
    ping: (message) => say({ t: "pong", n: message.n }),
    look: (message) => {
      Object.assign(look, { theme: message.theme, lang: message.lang });
      document.documentElement.lang = look.lang;
      document.documentElement.dataset.theme = look.theme;
      document.documentElement.style.colorScheme = look.theme;
      for (const listener of lookListeners) listener({ ...look });
    },
  };

  addEventListener("message", function onPort(event) {
    if (event.source !== parent || event.data?.lineup !== "port" || event.ports.length !== 1) return;
    removeEventListener("message", onPort);
    [port] = event.ports;
    port.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      take[message.t](message);
    };
    for (const text of outbox.splice(0)) port.postMessage(text);
  });

  const surface = Object.freeze({
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
    event: (name, body = {}) => ask({ t: "event", name, body }),
    onLook(listener) {
      lookListeners.push(listener);
      listener({ ...look });
    },
    get theme() {
      return look.theme;
    },
    get lang() {
      return look.lang;
    },
  });
  Object.defineProperty(window, "lineup", { value: Object.freeze({ surface }) });
  parent.postMessage({ lineup: "hello", mount: document.documentElement.dataset.mount }, "*");
})();
