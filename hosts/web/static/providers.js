/**
 * What this page can do for Apps when the kernel asks it to (SPEC 10): show a notification, write the clipboard, save a file. Each was
 * allowed by the person; it is done once and answered once.
 */
import { t } from "./i18n/words.js";
import { download } from "./parts/artifact.js";
import { oneLine } from "./visible.js";

/** @typedef {{ request_id: string, capability: string, arguments: any, app_scope?: string, title?: string, path?: string }} Execute */

/** @type {Set<string>} ids acted on */
const seen = new Set();
/** @type {Map<string, () => void>} what waits for a click of the person, by request */
const waiting = new Map();

/** @typedef {(page: import("./page.js").Page, execute: Execute) => Promise<string>} Provider gives a code, or "" when done */
/** @type {Readonly<Record<string, Provider>>} */
const ABLE = { "notification.show": notify, "clipboard.write": copy, "artifact.save": save };

/** @param {import("./page.js").Page} page @param {Execute} execute */
export async function provide(page, execute) {
  if (seen.has(execute.request_id)) return;
  seen.add(execute.request_id);
  const able = ABLE[execute.capability];
  const code = able ? await able(page, execute) : "unsupported";
  page.connection.tell({ op: "provided", request_id: execute.request_id, ok: code === "", ...(code ? { code } : {}) });
}

/** The person took it back. @param {string} requestId */
export function stopProviding(requestId) {
  waiting.get(requestId)?.();
}

/** @param {Execute} execute */
const nameOf = (execute) =>
  oneLine(`${execute.title ?? execute.app_scope ?? ""}${execute.title && execute.app_scope ? ` (${execute.app_scope})` : ""}`, 160);

/** Whether this browser may show notifications on the desktop: granted | default (not asked yet) | denied. */
export const mayNotify = () => ("Notification" in window ? Notification.permission : "denied");

/** @param {import("./page.js").Page} page @param {Execute} execute */
async function notify(page, execute) {
  const { title, body } = execute.arguments;
  const text = oneLine(body ? `${title}: ${body}` : title, 480);
  page.toast({ from: nameOf(execute), text });
  if (mayNotify() === "granted" && document.hidden) new Notification(nameOf(execute), { body: text });
  return "";
}

/**
 * The browser may want an act of the person first: then a toast offers it.
 * @param {import("./page.js").Page} page
 * @param {Execute} execute
 */
async function copy(page, execute) {
  const text = String(execute.arguments.text);
  if (await written(text)) {
    page.toast({ tone: "good", from: nameOf(execute), text: t("provide.copied") });
    return "";
  }
  return new Promise((done) => {
    /** @param {string} code */
    const end = (code) => {
      waiting.delete(execute.request_id);
      page.dropToast(key);
      done(code);
    };
    const run = () => void written(text).then((isDone) => end(isDone ? "" : "refused_by_browser"));
    const key = page.toast({ from: nameOf(execute), text: t("provide.copy_ask"), action: { label: t("provide.copy"), run } });
    waiting.set(execute.request_id, () => end("stopped"));
  });
}

/** @param {string} text */
async function written(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch (refused) {
    if (refused instanceof DOMException) return false; // no focus, or not allowed
    throw refused;
  }
}

/** @param {import("./page.js").Page} page @param {Execute} execute */
async function save(page, execute) {
  if (!execute.path) return "bytes_lost";
  download(execute.path); // the host names the file
  page.toast({ tone: "good", from: nameOf(execute), text: t("provide.saved", { name: oneLine(execute.arguments.name, 100) }) });
  return "";
}
