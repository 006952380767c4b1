/**
 * The page's end of the bridge (hosts/web/static/bridge.js) without a page: for bridge.py, which writes the inputs and judges the outcomes.
 *
 * One line in: {"window": value, "texts": [text or any value], "outcomes": [name]}: what the frame's window says, what comes over its port,
 * and how the host answers. One line out: {"sent": [messages to the host], "said": [texts to the frame], "threw": [...]}.
 */
import { createInterface } from "node:readline";

/** @type {((event: object) => void)[]} */
const listeners = [];
globalThis.addEventListener = (_name, listener) => listeners.push(listener);
globalThis.requestAnimationFrame = (callback) => queueMicrotask(callback);
globalThis.setInterval = () => 0; // no heartbeat: nothing here is about time
globalThis.setTimeout = (callback) => queueMicrotask(callback);
/** Both ends in one: what the page posts is kept, what comes is given to it at once. */
globalThis.MessageChannel = class {
  constructor() {
    this.port1 = { onmessage: null, said: [], postMessage: (text) => this.port1.said.push(text), close: () => {} };
    this.port2 = this.port1;
  }
};
const threw = [];
process.on("unhandledRejection", (error) => threw.push(String(error)));

const { Bridge } = await import(process.argv[2]);

const OUTCOMES = {
  ok: (version) => ({ ok: true, value: { version } }),
  refused: () => ({ ok: false, code: "limit_exceeded", detail: { pointer: "/a" } }),
  lost: () => ({ ok: false, code: "lost" }),
  stale: () => ({ ok: false, code: "stale_mount" }),
  conflict: (version) => ({ ok: false, code: "version_conflict", detail: { version } }),
};

/** @param {{ window: unknown, texts: unknown[], outcomes: string[] }} input */
async function run({ window, texts, outcomes }) {
  threw.length = 0;
  const sent = [];
  let given = null;
  let version = 1;
  const contentWindow = { postMessage: (_data, _origin, [port]) => (given = port) };
  const frame = { contentWindow, addEventListener: () => {}, remove: () => {} };
  const send = async (message) => {
    sent.push(JSON.parse(JSON.stringify(message)));
    const name = outcomes[(sent.length - 1) % outcomes.length];
    if (name === "conflict" && sent.length < 50) bridge.patched((version += 1), { other: 1 });
    else if (name === "ok") version += message.op === "surface.patch" ? 1 : 0;
    return OUTCOMES[name](version);
  };
  const mounted = { mount: "m", version: 1, state: {}, carried: [] };
  const bridge = new Bridge(frame, mounted, { theme: "light", lang: "en" }, { send, ended: () => {} });
  const tell = (listener, event) => {
    try {
      listener(event);
    } catch (error) {
      threw.push(String(error));
    }
  };
  for (const source of [null, {}, contentWindow]) for (const listener of listeners) tell(listener, { source, data: window });
  const wasGiven = given !== null;
  if (!wasGiven) for (const listener of listeners) tell(listener, { source: contentWindow, data: { lineup: "hello", mount: "m" } });
  for (const data of texts) {
    if (given?.onmessage) tell(given.onmessage, { data });
    await new Promise((resolve) => setImmediate(resolve));
  }
  bridge.end("closed");
  await new Promise((resolve) => setImmediate(resolve));
  return { sent, said: given?.said ?? [], wasGiven, threw: [...threw] };
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await run(JSON.parse(line));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
