/**
 * The one WebSocket to the host: opened again by itself, asks as promises.
 * 1. A lost link comes back with growing waits (FIRST_WAIT_MS … LONGEST_WAIT_MS), at once when the machine comes online again.
 * 2. An ask made while there is no link waits for the next one. One whose link ends before its reply ends as `lost`: nobody knows whether
 *    it was done, and it is not sent again by itself.
 * 3. A refused token ends it: asking again with the same one would change nothing.
 * 4. What the host would not read (too long, half a character) is not sent: it would end the link, and with it every ask on the way.
 * 5. A link over which nothing comes is no link: while the page is looked at, a small question is asked every BEAT_MS, and who waits for
 *    its answer longer than MISSED beats is told. Counted in beats, so that a machine that slept is not taken for a host that did.
 */
/** @import { Outcome } from "./types.d.ts" */

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 8000;
const REFUSED = 4401;
const NO_ROOM = 1013;
const MAX_QUEUED = 200;
const MAX_BYTES = 256 * 1024 - 32; // as the host takes them, less room for the number
const HALF_CHARACTER = /(?<!\\)(?:\\\\)*\\ud[89a-f]/; // how JSON writes one
const BEAT_MS = 5000;
const MISSED = 3;

export class Connection {
  /**
   * @param {string} url @param {() => object} greeting the first message, with the token
   * @param {{ message: (message: any) => void, link: (state: "connecting" | "open" | "away" | "crowded" | "refused") => void,
   *   stuck: (isStuck: boolean) => void }} told
   */
  constructor(url, greeting, told) {
    this.url = url;
    this.greeting = greeting;
    this.told = told;
    /** @type {WebSocket | null} */
    this.socket = null;
    this.isOpen = false;
    this.wait = FIRST_WAIT_MS;
    this.next = 1;
    this.timer = 0;
    /** @type {Map<number, (outcome: Outcome) => void>} asks on the current link */
    this.asked = new Map();
    /** @type {{ message: object, settle: (outcome: Outcome) => void }[]} */
    this.queued = [];
    this.missed = 0;
    this.isBeating = false;
    setInterval(() => this.#beat(), BEAT_MS);
  }

  /** Open it, or try again now. */
  open() {
    clearTimeout(this.timer);
    if (this.socket !== null) return;
    this.told.link("connecting");
    const socket = new WebSocket(this.url);
    this.socket = socket;
    socket.onopen = () => socket.send(JSON.stringify(this.greeting()));
    socket.onmessage = (event) => this.#take(JSON.parse(event.data));
    socket.onclose = (event) => this.#closed(event.code);
  }

  /** Give up a link over which nothing comes, and open another. */
  openAnew() {
    const socket = this.socket;
    if (socket === null) return this.open();
    socket.onclose = socket.onmessage = null; // a peer that does not answer does not close either
    socket.close();
    this.#closed(0);
    this.open();
  }

  /** Ask the host; never rejects. @param {object} message without its id @returns {Promise<Outcome>} */
  request(message) {
    return new Promise((settle) => {
      const code = whyNot(JSON.stringify(message));
      if (code) settle({ ok: false, code });
      else if (this.isOpen) this.#ask(message, settle);
      else if (this.queued.length < MAX_QUEUED) this.queued.push({ message, settle });
      else settle({ ok: false, code: "lost" });
    });
  }

  /** Say something that is not answered. @param {object} message */
  tell(message) {
    const text = JSON.stringify(message);
    if (this.isOpen && !whyNot(text)) this.socket?.send(text);
  }

  #beat() {
    if (!this.isOpen || (document.hidden && !this.isBeating)) return;
    if (this.isBeating) {
      this.missed += 1;
      if (this.missed === MISSED) this.told.stuck(true);
      return;
    }
    this.isBeating = true;
    void this.request({ op: "ask", type: "kernel.status" }).then(() => this.#heard());
  }

  #heard() {
    this.isBeating = false;
    if (this.missed >= MISSED) this.told.stuck(false);
    this.missed = 0;
  }

  /** @param {object} message @param {(outcome: Outcome) => void} settle */
  #ask(message, settle) {
    const id = this.next++;
    this.asked.set(id, settle);
    this.socket?.send(JSON.stringify({ ...message, id }));
  }

  /** @param {any} message */
  #take(message) {
    if (message.op === "reply") {
      const settle = this.asked.get(message.id);
      this.asked.delete(message.id);
      settle?.(outcomeOf(message));
      return;
    }
    if (message.op === "welcome") {
      this.isOpen = true;
      this.wait = FIRST_WAIT_MS;
      this.told.link("open");
      for (const { message: waiting, settle } of this.queued.splice(0)) this.#ask(waiting, settle);
    }
    this.told.message(message);
  }

  /** @param {number} code */
  #closed(code) {
    const wasOpen = this.isOpen;
    this.socket = null;
    this.isOpen = false;
    for (const settle of this.asked.values()) settle({ ok: false, code: "lost" });
    this.asked.clear();
    if (code === REFUSED) {
      this.told.link("refused");
      return;
    }
    this.told.link(code === NO_ROOM && !wasOpen ? "crowded" : "away");
    this.timer = setTimeout(() => this.open(), this.wait * (0.75 + Math.random() / 2));
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT_MS);
  }
}

/** The code with which a message is not sent, or "". @param {string} text */
function whyNot(text) {
  if (HALF_CHARACTER.test(text)) return "protocol_violation";
  const isLong = text.length > MAX_BYTES || (text.length > MAX_BYTES / 3 && new TextEncoder().encode(text).length > MAX_BYTES);
  return isLong ? "limit_exceeded" : "";
}

/** @param {{ value?: any, receipt?: any, lost?: boolean }} reply @returns {Outcome} */
function outcomeOf(reply) {
  if (reply.lost) return { ok: false, code: "lost" };
  const receipt = reply.receipt;
  if (receipt && !receipt.accepted) return { ok: false, code: String(receipt.code ?? "unknown"), detail: receipt.detail };
  return { ok: true, value: reply.value ?? {} };
}
