/**
 * What the text of a frame means: one message of the known form, or nothing. Pure; it throws nothing.
 * 1. JSON under the value rules of the wire (SPEC 2.1): what the host would refuse never leaves the page. There each refusal counts
 *    against the page, and a surface could have the whole page cut off by them.
 */
/** @import { Json } from "./types.d.ts" */

const MAX_DEPTH = 15; // of a message; the host takes as many
const MAX_NAME = 128; // code points

/** @typedef {{ [name: string]: Json }} JsonObject */
/** @typedef {{ kind: "patch", n: number, patch: JsonObject } | { kind: "event", n: number, name: string, body: JsonObject }} Act */

/** One JSON object, or undefined. @param {string} text @returns {any} */
export function parsed(text) {
  try {
    const value = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What a parsed message asks for, or null. @param {any} message @returns {Act | null} */
export function actOf(message) {
  const { t, n } = message;
  if (numberOf(message) === null || !isShallow(message)) return null;
  if (t === "patch" && isObject(message.patch) && isAdmitted(message.patch)) return { kind: "patch", n, patch: message.patch };
  const { name, body } = message;
  return t === "event" && isName(name) && isObject(body) && isAdmitted(body) ? { kind: "event", n, name, body } : null;
}

/** The number under which a message is answered, or null. @param {any} message @returns {number | null} */
export const numberOf = ({ n }) => (Number.isSafeInteger(n) && n >= 1 ? n : null);

/** @param {unknown} name */
const isName = (name) => typeof name === "string" && name !== "" && name.isWellFormed() && [...name].length <= MAX_NAME;

/** @param {unknown} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether a value is at most MAX_DEPTH deep; looked at level by level, since what is deep enough ends a recursion. @param {unknown} value */
function isShallow(value) {
  let level = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > MAX_DEPTH) return false;
    level = level.flatMap((one) => (typeof one === "object" && one !== null ? Object.values(one) : []));
  }
  return true;
}

/** Whether every number and text in it may travel. @param {unknown} value a shallow one @returns {boolean} */
function isAdmitted(value) {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value === "number") return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([name, one]) => name.isWellFormed() && isAdmitted(one));
}
