/**
 * The page's end of the bridge (hosts/web/static/bridge.js) without a page: for bridge.py, which writes the inputs and judges the outcomes.
 *
 * One line in: {"window": value, "texts": [text or any value], "acts": [[place, name]], "outcomes": [name], "carried": [acts], "pace": ms}:
 * what the frame's window says, what comes over its port, what the page does before the text at that place, how the host answers, what is
 * left of the mount before, and what time passes between two texts. One line out: {"sent": [messages to the host], "said": [texts to the
 * frame], "threw": [...], "ended": [why]}.
 */
import { createInterface } from "node:readline";

/** @type {((event: object) => void)[]} */
const listeners = [];
globalThis.addEventListener = (_name, listener) => listeners.push(listener);
globalThis.requestAnimationFrame = (callback) => queueMicrotask(callback);
let clock = 0;
Object.defineProperty(globalThis, "performance", { value: { now: () => clock } });
/** @type {(() => void)} */
let beat = () => {};
globalThis.setInterval = (callback) => {
  beat = callback;
  return 0;
};
globalThis.setTimeout = (callback, ms) => {
  clock += ms;
  queueMicrotask(callback);
};
/** Both ends in one: what the page posts is kept, what comes is given to it at once. */
globalThis.MessageChannel = class {
  constructor() {
    this.port1 = { onmessage: null, said: [], postMessage: (text) => this.port1.said.push(text), close: () => {} };
    this.port2 = this.port1;
  }
};
const threw = [];
process.on("unhandledRejection", (error) => threw.push(String(error)));

const { Bridge, droppedText, expectMount, onSurfaceMessage, watchDropped } = await import(process.argv[2]);

const OUTCOMES = {
  ok: (version) => ({ ok: true, value: { version } }),
  refused: () => ({ ok: false, code: "limit_exceeded", detail: { pointer: "/a" } }),
  lost: () => ({ ok: false, code: "lost" }),
  stale: () => ({ ok: false, code: "stale_mount" }),
  conflict: (version) => ({ ok: false, code: "version_conflict", detail: { version } }),
  behind: (version) => ({ ok: false, code: "version_conflict", detail: { version: version + 1 } }),
  unnamed: () => ({ ok: false, code: "version_conflict" }),
};
const soon = () => new Promise((resolve) => setImmediate(resolve));

/** What the page does besides, by name. */
const acts = ({ bridge, loads, next, take }) => ({
  look: () => bridge.look({ theme: "dark", lang: "zh" }),
  leave: () => void bridge.leave(),
  load: () => loads.forEach((listener) => listener()),
  beat: () => beat(),
  change: () => onSurfaceMessage({ op: "surface.patched", mount: "m", version: next(1), patch: { other: 1 } }),
  gap: () => onSurfaceMessage({ op: "surface.patched", mount: "m", version: next(2), patch: { other: 1 } }),
  foreign: () => onSurfaceMessage({ op: "surface.patched", mount: "another", version: 1, patch: {} }),
  early: () => void expectMount(async () => onSurfaceMessage({ op: "surface.unmounted", mount: "another", reason: "closed" })),
  link_lost: () => onSurfaceMessage({ op: "surface.unmounted", mount: "m", reason: "link_lost" }),
  taken_over: () => onSurfaceMessage({ op: "surface.unmounted", mount: "m", reason: "taken_over" }),
  closed: () => onSurfaceMessage({ op: "surface.unmounted", mount: "m" }),
  long: () => take("x".repeat(70_000)),
  many: () => Array.from({ length: 250 }, () => take('{"t":"patch","n":1,"patch":{}}')),
});

/** @param {{ window: unknown, texts: unknown[], acts: [number, string][], outcomes: string[], carried: object[], pace: number }} input */
async function run(input) {
  const { window, texts, outcomes, carried, pace } = input;
  threw.length = 0;
  const sent = [];
  const ended = [];
  const loads = [];
  let given = null;
  let version = 1;
  const contentWindow = { postMessage: (_data, _origin, [port]) => (given = port) };
  const frame = { contentWindow, addEventListener: (_name, listener) => loads.push(listener), remove: () => {} };
  const send = async (message) => {
    sent.push(JSON.parse(JSON.stringify(message)));
    const name = outcomes[(sent.length - 1) % outcomes.length];
    await (name === "late" ? soon() : null); // a host never answers at once
    if (name === "conflict" && sent.length < 50) bridge.patched((version += 1), { other: 1 });
    else if (name === "ok" || name === "late") version += message.op === "surface.patch" ? 1 : 0;
    if (sent.length > 60) return OUTCOMES.ok(version);
    return OUTCOMES[name === "late" ? "ok" : name](version);
  };
  const mounted = { mount: "m", version: 1, state: {}, carried };
  const leave = watchDropped(() => {});
  const bridge = new Bridge(frame, mounted, { theme: "light", lang: "en" }, { send, ended: (why) => ended.push(why) });
  const tell = (listener, ...given) => {
    try {
      listener(...given);
    } catch (error) {
      threw.push(String(error));
    }
  };
  const take = (data) => given?.onmessage && tell(given.onmessage, { data });
  const next = (step) => (version += step);
  for (const source of [null, {}, contentWindow]) for (const listener of listeners) tell(listener, { source, data: window });
  const wasGiven = given !== null;
  if (!wasGiven) for (const listener of listeners) tell(listener, { source: contentWindow, data: { lineup: "hello", mount: "m" } });
  for (const [place, data] of texts.entries()) {
    clock += pace;
    for (const [, name] of input.acts.filter(([at]) => at === place)) tell(acts({ bridge, loads, next, take })[name]);
    take(data);
    await soon();
  }
  bridge.end("closed");
  leave();
  await soon();
  JSON.parse(droppedText());
  return { sent, said: given?.said ?? [], wasGiven, threw: [...threw], ended };
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await run(JSON.parse(line));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
