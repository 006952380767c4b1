/**
 * The page's end of the bridge to an isolated surface. What a frame says is hostile until it is checked; what is not as it has to be is
 * dropped, counted and never answered.
 *
 * Use: `new Bridge(frame, mounted, told)` before the frame is put into the page; `patched`, `look`, `end` from the page's side.
 * 1. A window message counts only if it comes from the window of a frame that is shown now, is our hello, bears the id of its mount and is
 *    the first. It is answered by one port. Origins prove nothing here: every frame's is "null".
 * 2. Over the port: text of at most MAX_TEXT, one JSON object of the known form, 60 a second with a burst of 120. MAX_STRIKES that are
 *    not so end the mount; closing the port throws away what is queued. A patch or an event under a number is refused under it, too.
 * 3. A second load, or MAX_SILENCE heartbeats without an answer, end the mount: the document in the frame is another one, or stuck.
 * 4. Patches and events go to the kernel one at a time, in their order, each on the version before it. A change that the App made
 *    meanwhile comes first, and the patch is tried again on top of it. While the kernel is away they wait; what was not done when a mount
 *    ends is carried to the next one, but for an event of which nobody knows whether it was done. Before another mount takes its place the
 *    frame is asked for what it has begun and not said.
 */
/** @import { Outcome } from "./types.d.ts" */
/** @import { Act as Asked, JsonObject } from "./bridge_messages.js" */
import { actOf, numberOf, parsed } from "./bridge_messages.js";

const MAX_TEXT = 64 * 1024;
const RATE_PER_MS = 0.06;
const BURST = 120;
const MAX_STRIKES = 100;
const HEARTBEAT_MS = 5000;
const MAX_SILENCE = 3;
const MAX_QUEUED = 128;
const CATCH_UP_MS = 5000;
const TAKEN_OVER_MS = 300;
const LEAVE_MS = 300;

/** @typedef {Asked | { kind: "patch", n: null, patch: JsonObject } | { kind: "event", n: null, name: string, body: JsonObject }} Act
 *   n: null = of the mount before, whose document is gone */
/** @typedef {"navigated" | "silent" | "misbehaved" | "out_of_step" | "link" | "taken_over" | "closed" | "left"} End */
/** @typedef {{ theme: "light" | "dark", lang: "en" | "zh" }} Look */
/**
 * @typedef {object} Mounted what surface.mount answered, and what was left unsent by the mount before
 * @property {string} mount @property {number} version @property {JsonObject} state @property {Act[]} carried
 */
/**
 * @typedef {object} Told
 * @property {(message: { op: string, [name: string]: any }) => Promise<Outcome>} send @property {(why: End, carried: Act[]) => void} ended
 */

/** @type {Map<string, number>} what was dropped so far, by reason */
const dropped = new Map();
/** @type {Set<() => void>} */
const watchers = new Set();
/** @type {Set<Bridge>} the mounts that are shown */
const bridges = new Set();
let isTelling = false;

/** What was dropped so far, by reason; as JSON for whoever looks at the page. */
export const droppedText = () => JSON.stringify(Object.fromEntries(dropped));

/** Be told of drops, at most once a frame. @param {() => void} watcher @returns {() => void} */
export function watchDropped(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** @param {string} reason */
function drop(reason) {
  dropped.set(reason, (dropped.get(reason) ?? 0) + 1);
  if (isTelling) return;
  isTelling = true;
  requestAnimationFrame(() => {
    isTelling = false;
    for (const watcher of watchers) watcher();
  });
}

addEventListener("message", (event) => {
  for (const bridge of bridges) {
    if (event.source !== null && event.source === bridge.frame.contentWindow) {
      bridge.hear(event.data);
      return;
    }
  }
  drop("not_current_frame");
});

/** @typedef {{ op: string, mount: string, version?: number, patch?: JsonObject, reason?: string }} HostMessage */
/** @type {HostMessage[]} what was said of mounts whose reply is still on its way */
const early = [];
let expected = 0;

/**
 * Ask for a mount: what the host says of it before its reply is kept for it.
 * @template T @param {() => Promise<T>} ask @returns {Promise<T>}
 */
export async function expectMount(ask) {
  expected += 1;
  const answer = await ask();
  expected -= 1;
  return answer;
}

/** What the host says of a mount. @param {HostMessage} message */
export function onSurfaceMessage(message) {
  const bridge = [...bridges].find((one) => one.mount === message.mount);
  if (bridge === undefined && expected > 0 && early.length < MAX_QUEUED) early.push(message);
  else if (bridge === undefined) drop("stale_mount");
  else if (message.op === "surface.unmounted" && message.reason === "link_lost") bridge.pause();
  else if (message.op === "surface.unmounted") bridge.end(message.reason === "taken_over" ? "taken_over" : "closed");
  else bridge.patched(Number(message.version), message.patch ?? {});
}

export class Bridge {
  /** @type {MessagePort | null} */
  #port = null;
  /** @type {Act[]} */
  #queue;
  /** @type {Map<number, JsonObject>} changes that came before the one they follow */
  #held = new Map();
  #version;
  /** @type {object[]} what the frame is to hear first, once it said hello */
  #unsaid;
  #told;
  #look;
  #loads = 0;
  #strikes = 0;
  #tokens = BURST;
  #tokensAt = performance.now();
  #pings = 0;
  #unanswered = 0;
  #isBusy = false;
  #isPaused = false;
  #isOver = false;
  #isLeaving = false;
  /** @type {Act | null} an event on its way, or lost on it */
  #unsure = null;
  /** @type {() => void} */
  #caughtUp = () => {};
  /** @type {() => void} */
  #left = () => {};

  /** @param {HTMLIFrameElement} frame @param {Mounted} mounted @param {Look} look @param {Told} told */
  constructor(frame, mounted, look, told) {
    this.frame = frame;
    this.mount = mounted.mount;
    this.#version = mounted.version;
    this.#unsaid = [{ t: "state", version: mounted.version, state: mounted.state }];
    this.#queue = mounted.carried.map((act) => ({ ...act, n: null }));
    this.#told = told;
    this.#look = look;
    this.timer = setInterval(() => this.#beat(), HEARTBEAT_MS);
    frame.addEventListener("load", () => this.#loaded());
    bridges.add(this);
    this.#pump();
    for (const message of early.splice(0)) onSurfaceMessage(message);
  }

  /** Theme or language changed. @param {Look} look */
  look(look) {
    this.#look = look;
    if (this.#port !== null) this.#say({ t: "look", ...look });
  }

  /** The App changed the surface. @param {number} version @param {JsonObject} patch */
  patched(version, patch) {
    if (version > this.#version) this.#held.set(version, patch);
    this.#applyHeld();
    if (this.#held.size > 0 && !this.#isBusy) this.end("out_of_step");
  }

  /** The kernel is away: keep what the frame says until there is another mount for it. */
  pause() {
    this.#isPaused = true;
  }

  /** Another mount takes its place: let the frame say what it has begun (a line under the pen), then end. */
  async leave() {
    if (this.#port === null || this.#isLeaving) return this.end("link");
    this.#isLeaving = true;
    this.pause();
    this.#say({ t: "leave" });
    await new Promise((resolve) => {
      this.#left = () => resolve(undefined);
      setTimeout(resolve, LEAVE_MS);
    });
    this.end("link");
  }

  /** End the mount: nothing of its frame counts any more. @param {End} why */
  end(why) {
    if (this.#isOver) return;
    this.#isOver = true;
    bridges.delete(this);
    clearInterval(this.timer);
    this.#port?.close();
    this.frame.remove();
    this.#caughtUp();
    this.#told.ended(
      why,
      this.#queue.filter((act) => act !== this.#unsure),
    );
  }

  /** A message of the frame's own window. @param {any} data */
  hear(data) {
    const isHello = typeof data === "object" && data !== null && data.lineup === "hello" && data.mount === this.mount;
    if (this.#port !== null || !isHello) {
      this.#strike("bad_hello");
      return;
    }
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.onmessage = (event) => this.#take(event.data);
    this.frame.contentWindow?.postMessage({ lineup: "port" }, "*", [port2]);
    this.#say({ t: "look", ...this.#look });
    for (const message of this.#unsaid.splice(0)) this.#say(message);
  }

  #loaded() {
    this.#loads += 1;
    if (this.#loads === 1) return;
    drop("frame_navigated");
    this.end("navigated");
  }

  #beat() {
    if (this.#unanswered >= MAX_SILENCE) {
      drop("frame_silent");
      this.end("silent");
      return;
    }
    this.#unanswered += 1;
    if (this.#port === null) return;
    this.#pings += 1;
    this.#say({ t: "ping", n: this.#pings });
  }

  /** @param {object} message */
  #say(message) {
    if (this.#port === null) this.#unsaid.push(message);
    else this.#port.postMessage(JSON.stringify(message));
  }

  /** @param {string} reason */
  #strike(reason) {
    drop(reason);
    this.#strikes += 1;
    if (this.#strikes >= MAX_STRIKES) {
      drop("surface_ended");
      this.end("misbehaved");
    }
  }

  /** @param {unknown} data */
  #take(data) {
    if (this.#isOver) return drop("stale_port");
    if (!this.#hasToken()) return this.#strike("rate_limited");
    if (typeof data !== "string") return this.#strike("not_text");
    if (data.length > MAX_TEXT) return this.#strike("too_large");
    const message = parsed(data);
    if (message === undefined) return this.#strike("not_json");
    if (message.t === "pong") {
      if (message.n === this.#pings) this.#unanswered = 0;
      return;
    }
    if (message.t === "left" && this.#isLeaving) return this.#left();
    const act = actOf(message);
    if (act === null) {
      const n = numberOf(message);
      if (n !== null && (message.t === "patch" || message.t === "event")) this.#say({ t: "no", n, code: "protocol_violation" });
      return this.#strike("bad_message");
    }
    if (this.#queue.length >= MAX_QUEUED) this.#say({ t: "no", n: act.n, code: "limit_exceeded" });
    else this.#queue.push(act);
    this.#pump();
  }

  #hasToken() {
    const now = performance.now();
    this.#tokens = Math.min(BURST, this.#tokens + (now - this.#tokensAt) * RATE_PER_MS);
    this.#tokensAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  async #pump() {
    if (this.#isBusy) return;
    this.#isBusy = true;
    while (this.#queue.length > 0 && !this.#isOver && !this.#isPaused) {
      const act = /** @type {Act} */ (this.#queue[0]);
      if (act.kind === "event") this.#unsure = act;
      const outcome = await this.#send(act);
      if (outcome.ok || outcome.code !== "lost") this.#unsure = null;
      if (this.#isOver) return; // what was not said to be done is carried
      if (!outcome.ok && outcome.code === "version_conflict") await this.#catchUp(outcome.detail);
      else if (!this.#settle(act, outcome)) return;
    }
    this.#isBusy = false;
    if (this.#held.size > 0 && !this.#isOver) this.end("out_of_step");
  }

  /** @param {Act} act */
  #send(act) {
    const { mount } = this;
    if (act.kind === "event") return this.#told.send({ op: "surface.event", mount, name: act.name, body: act.body });
    return this.#told.send({ op: "surface.patch", mount, base_version: this.#version, patch: act.patch });
  }

  /** @param {Act} act @param {Outcome} outcome @returns {boolean} whether the mount goes on */
  #settle(act, outcome) {
    if (!outcome.ok && (outcome.code === "lost" || this.#isPaused)) this.pause();
    // Who took the surface over is told apart from a kernel that forgot the mount by what the host says next.
    else if (!outcome.ok && outcome.code === "stale_mount") setTimeout(() => this.end("link"), TAKEN_OVER_MS);
    else this.#answer(act, outcome);
    return outcome.ok || (!this.#isPaused && outcome.code !== "stale_mount");
  }

  /** @param {Act} act @param {Outcome} outcome */
  #answer(act, outcome) {
    this.#queue.shift();
    if (!outcome.ok) {
      this.#sayOf(act, { t: "no", code: outcome.code, detail: outcome.detail });
      return;
    }
    if (act.kind === "event") this.#sayOf(act, { t: "ok" });
    else this.#confirm(act, Number(outcome.value.version));
    this.#applyHeld();
  }

  /** Answer the frame that asked, if it is still there. @param {Act} act @param {object} message */
  #sayOf(act, message) {
    if (act.n !== null) this.#say({ ...message, n: act.n });
  }

  /** @param {Act & { kind: "patch" }} act @param {number} version */
  #confirm(act, version) {
    this.#version = version;
    if (act.n === null) this.#say({ t: "patched", version, patch: act.patch });
    else this.#say({ t: "ok", n: act.n, version });
  }

  #applyHeld() {
    for (let next = this.#held.get(this.#version + 1); next !== undefined; next = this.#held.get(this.#version + 1)) {
      this.#version += 1;
      this.#held.delete(this.#version);
      this.#say({ t: "patched", version: this.#version, patch: next });
    }
    this.#caughtUp();
  }

  /** Wait until the change that was in the way has come. @param {any} detail */
  async #catchUp(detail) {
    const wanted = Number(detail?.version ?? this.#version + 1);
    const until = performance.now() + CATCH_UP_MS;
    while (!this.#isOver && this.#version < wanted) {
      if (performance.now() >= until) {
        this.end("out_of_step");
        return;
      }
      await new Promise((resolve) => {
        this.#caughtUp = () => resolve(undefined);
        setTimeout(resolve, CATCH_UP_MS);
      });
    }
  }
}
