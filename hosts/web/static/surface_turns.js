/**
 * How much the surfaces of this page say a second, all together. Each alone has a measure (bridge.js), but the host counts the whole page,
 * refuses what is too much and cuts the page in the end: a few Apps would take it from all others and from the person.
 *
 * Use: `await turns.take()` before each message of a surface.
 * 1. Turns are given in the order they are asked for. A surface has one message on its way, so none keeps another from speaking.
 * 2. A third of what the host takes (hosts/web/pace.py) is left to the person.
 */

const TURNS_PER_MS = 0.08;
const BURST = 120;

export class Turns {
  #left = BURST;
  #at;
  #isTimed = false;
  /** @type {((nothing: void) => void)[]} */
  #waiting = [];

  /** @param {() => number} now ms that only rise @param {(run: () => void, ms: number) => void} later */
  constructor(now = () => performance.now(), later = (run, ms) => void setTimeout(run, ms)) {
    this.now = now;
    this.later = later;
    this.#at = now();
  }

  /** Wait for a turn. @returns {Promise<void>} */
  take() {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#give();
    });
  }

  #give() {
    const now = this.now();
    this.#left = Math.min(BURST, this.#left + (now - this.#at) * TURNS_PER_MS);
    this.#at = now;
    while (this.#left >= 1 && this.#waiting.length > 0) {
      this.#left -= 1;
      this.#waiting.shift()?.();
    }
    if (this.#waiting.length === 0 || this.#isTimed) return;
    this.#isTimed = true;
    this.later(() => {
      this.#isTimed = false;
      this.#give();
    }, Math.ceil((1 - this.#left) / TURNS_PER_MS));
  }
}
