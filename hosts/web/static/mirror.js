/**
 * What the page knows of the kernel: the last snapshot with every delta since applied, by the rules of hosts/mirror.py. Pure.
 * 1. Nothing is guessed: a click changes nothing here until the kernel's delta says so.
 * 2. Windows: all that is open, and the newest MAX_… of what ended; a kind this page does not know is left out.
 * 3. A new snapshot of the same kernel keeps what was known of ended things and of older messages, when the two windows touch: a
 *    reconnect takes nothing away from under the reader.
 */
/** @import { CallSummary, Change, Interaction, MessageSummary, Mirror, SnapshotState } from "./types.d.ts" */
import { appTitle } from "./i18n/words.js";

export const MAX_MESSAGES = 500;
const MAX_ENDED_CALLS = 200;
const MAX_GONE_INSTANCES = 50;
const MAX_ENDED_INTERACTIONS = 100;
export const CHAT = "chat";

const ENDED = new Set(["submitted", "completed", "failed", "cancelled", "expired", "rejected"]);
const GONE = new Set(["stopped", "failed"]);
const WAITING = new Set(["pending", "presented"]);

/** @type {Readonly<Record<string, [keyof Mirror, string, (value: any) => boolean]>>} kind: where it is kept, by what, and while what */
const KEYED = {
  call: ["calls", "number", () => true],
  consent: ["consents", "request_id", (value) => value.status === "asked"],
  instance: ["instances", "instance_id", () => true],
  interaction: ["interactions", "interaction_id", () => true],
  message: ["messages", "number", () => true],
  surface: ["surfaces", "surface_id", (value) => value.is_open],
};
const WHOLE = new Set(["agent", "apps", "focus", "revision"]);

/** @param {CallSummary} call */
export const isOpenCall = (call) => !ENDED.has(call.status);
/** @param {{ state: string }} instance */
export const isGone = (instance) => GONE.has(instance.state);
/** @param {Interaction} question */
export const isWaiting = (question) => WAITING.has(question.status) && question.kind !== "notice";

/** @template T @template {keyof T} K @param {T[]} rows @param {K} key @returns {Map<T[K], T>} */
const by = (rows, key) => new Map(rows.map((row) => [row[key], row]));

/** Begin anew from a snapshot (rule 3). @param {SnapshotState} state @param {Mirror | null} before @returns {Mirror} */
export function fromSnapshot(state, before) {
  const known = before !== null && before.kernel.epoch === state.kernel.epoch ? before : null;
  const calls = new Map([...(known?.calls ?? [])].filter(([, call]) => !isOpenCall(call)));
  for (const call of state.calls) calls.set(call.number, call);
  const interactions = new Map([...(known?.interactions ?? [])].filter(([, one]) => !WAITING.has(one.status)));
  for (const one of state.interactions) interactions.set(one.interaction_id, one);
  const instances = new Map([...(known?.instances ?? [])].filter(([, one]) => isGone(one)));
  for (const one of state.instances) instances.set(one.instance_id, one);
  return trimmed({
    calls,
    instances,
    interactions,
    messages: joined(known, state.messages),
    focus: state.focus,
    apps: state.apps,
    revision: state.revision,
    agent: state.agent,
    kernel: state.kernel,
    surfaces: by(state.surfaces, "surface_id"),
    consents: by(state.consents, "request_id"),
  });
}

/** @param {Mirror | null} known @param {MessageSummary[]} fresh */
function joined(known, fresh) {
  const newest = known === null ? 0 : Math.max(0, ...known.messages.keys());
  const isTouching = known !== null && fresh.length > 0 && fresh[0].number <= newest;
  return new Map([...(isTouching ? known.messages : []), ...by(fresh, "number")].sort(([a], [b]) => a - b));
}

/** One step on. @param {Mirror} mirror @param {Change[]} changes @returns {Mirror} */
export function apply(mirror, changes) {
  /** @type {any} */
  const next = { ...mirror };
  for (const { kind, value } of changes) {
    if (WHOLE.has(kind)) next[kind] = value;
    else if (kind in KEYED) keep(mirror, next, kind, value);
  }
  return trimmed(next);
}

/** @param {any} mirror @param {any} next @param {string} kind @param {any} value */
function keep(mirror, next, kind, value) {
  const [place, key, isKept] = KEYED[kind];
  if (next[place] === mirror[place]) next[place] = new Map(mirror[place]);
  if (isKept(value)) next[place].set(value[key], value);
  else next[place].delete(value[key]);
}

/** @param {any} mirror @returns {Mirror} */
function trimmed(mirror) {
  cut(mirror, "messages", MAX_MESSAGES, () => true, "number");
  cut(mirror, "calls", MAX_ENDED_CALLS, (call) => !isOpenCall(call), "number");
  cut(mirror, "interactions", MAX_ENDED_INTERACTIONS, (one) => !WAITING.has(one.status), "number");
  cut(mirror, "instances", MAX_GONE_INSTANCES, isGone, "started_at");
  return mirror;
}

/**
 * Let the oldest go of those that may.
 * @param {any} mirror
 * @param {string} place
 * @param {number} most
 * @param {(row: any) => boolean} may
 * @param {string} order
 */
function cut(mirror, place, most, may, order) {
  if (mirror[place].size <= most) return;
  const rows = [...mirror[place]].filter(([, row]) => may(row)).sort(([, a], [, b]) => (a[order] < b[order] ? -1 : 1));
  if (rows.length <= most) return;
  mirror[place] = new Map(mirror[place]);
  for (const [key] of rows.slice(0, rows.length - most)) mirror[place].delete(key);
}

// --- what is asked of it

/** The instance in front, or null for the conversation. @param {Mirror} mirror */
export const front = (mirror) => (mirror.focus.length ? (mirror.instances.get(mirror.focus[mirror.focus.length - 1]) ?? null) : null);
/** @param {Mirror} mirror */
export const liveApps = (mirror) => [...mirror.instances.values()].filter((one) => !isGone(one) && one.app_scope !== CHAT);
/** @param {Mirror} mirror */
export const openCalls = (mirror) => [...mirror.calls.values()].filter(isOpenCall).sort((a, b) => a.number - b.number);
/** @param {Mirror} mirror */
export const endedCalls = (mirror) => [...mirror.calls.values()].filter((call) => !isOpenCall(call)).sort((a, b) => b.number - a.number);
/** Questions that can be answered, oldest first. @param {Mirror} mirror */
export const waitingQuestions = (mirror) => [...mirror.interactions.values()].filter(isWaiting).sort((a, b) => a.number - b.number);
/** @param {Mirror} mirror */
export const waitingConsents = (mirror) => [...mirror.consents.values()].sort((a, b) => a.number - b.number);
/** The App's title, or its scope. @param {Mirror} mirror @param {string} scope */
export const titleOf = (mirror, scope) =>
  appTitle(mirror.apps.find((app) => app.app_scope === scope) ?? { app_scope: scope, title: scope });
/** The newest open surface of an App. @param {Mirror} mirror @param {string} scope */
export const surfaceOf = (mirror, scope) => [...mirror.surfaces.values()].filter((one) => one.app_scope === scope).pop();
/**
 * What the system App makes of the timeline.
 * @param {Mirror} mirror
 * @returns {{ unread?: number, summaries?: { number: number, text: string }[] }}
 */
export const chatState = (mirror) => surfaceOf(mirror, CHAT)?.state ?? {};
/** @param {Mirror} mirror */
export const timeline = (mirror) => [...mirror.messages.values()].sort((a, b) => a.number - b.number);
