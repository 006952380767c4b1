/**
 * The two dialogs that explain: the log of an App, and why something is as it is.
 * The why is the kernel's record in the language of the page, sentence by sentence, each with the rows it stands on.
 * The kernel explains in English; what it says is in the facts beside its sentences, and those are told here. A kind of thing that this
 * page does not know is told in the kernel's own words.
 */
/** @import { AuditRow, Explained, Mirror, PageState } from "../types.d.ts" */
import { moment, t, tOr, wordsOfCode } from "../i18n/words.js";
import * as mirrors from "../mirror.js";
import { usePage } from "../page.js";
import { html } from "../vendor/htm-preact.js";
import { oneLine, visible } from "../visible.js";
import { AuditTable } from "./activity.js";
import { Dialog, Icon } from "./basics.js";

/** @param {string} code @param {string} form */
const because = (code, form) => (code ? t(form, { why: wordsOfCode(oneLine(code, 40)) }) : "");
/** @param {string} state */
const stateWords = (state) => tOr(`state.${state}`, oneLine(state, 20));

/** @param {Explained} why @param {Mirror | null} mirror */
function openingOf({ kind, state, summary }, mirror) {
  const text = (/** @type {string} */ name) => oneLine(String(summary[name] ?? ""), 80);
  const ended = { state: stateWords(state), because: because(text("error_code"), "why.for") };
  const scope = text("app_scope");
  const app = mirror ? oneLine(mirrors.titleOf(mirror, scope), 60) : scope;
  if (summary.is_kept === false) return tOr(`why.gone.${kind}`, "") && t(`why.gone.${kind}`, ended);
  switch (kind) {
    case "call":
      return t("why.call", { tool: text("tool_id"), who: tOr(`source.${summary.source}`, text("source")), ...ended });
    case "capability":
      return t("why.capability", { app, what: tOr(`capability.${summary.capability}`, text("capability")), ...ended });
    case "interaction":
    case "instance":
    case "session":
      return t(`why.${kind}`, { app, ...ended });
    case "audit":
      return t("why.audit_row", { seq: text("seq") });
    case "row":
      return t("why.number");
    default:
      return "";
  }
}

/** @param {AuditRow} row */
function sentenceOf(row) {
  const isRefusal = row.event === "command.refused";
  return t("why.row", {
    at: moment(row.at),
    what: tOr(`event.${row.event}`, oneLine(row.event, 60)),
    times: isRefusal && row.count !== undefined ? t("why.times", { count: row.count }) : "",
    because: because(row.code ?? "", "why.because"),
    who: tOr(`speaker.${row.speaker}`, oneLine(row.speaker, 20)),
    command: oneLine(row.command, 40),
  });
}

/** @param {Explained} why @param {Mirror | null} mirror @returns {{ text: string, seqs: number[] }[]} */
export const sentencesOf = (why, mirror) => [
  { text: openingOf(why, mirror) || visible(why.sentences[0]?.text ?? ""), seqs: [] },
  ...why.audit.map((row) => ({ text: sentenceOf(row), seqs: row.cause === undefined ? [row.seq] : [row.seq, row.cause] })),
];

/** @param {{ state: PageState }} props */
export function Why({ state }) {
  const page = usePage();
  if (state.why === null) return null;
  return html`<${Explaining} title=${t("why.title")} onClose=${() => page.store.set({ why: null })}>
    <ol class="sentences" tabindex="0">
      ${sentencesOf(state.why, state.mirror).map(
        ({ text, seqs }, index) =>
          html`<li key=${index}>${text} <span class="muted">${seqs.length ? t("why.audit", { seqs: seqs.join(", ") }) : ""}</span></li>`,
      )}
    </ol>
    ${
      state.why.audit.length
        ? html`<details>
            <summary>${t("activity.audit")}</summary>
            <${AuditTable} rows=${state.why.audit} />
          </details>`
        : null
    }<//
  >`;
}

/** @param {{ state: PageState }} props */
export function Log({ state }) {
  const page = usePage();
  if (state.log === null) return null;
  return html`<${Explaining}
    title=${t("log.title", { title: oneLine(state.log.title, 60) })}
    onClose=${() => page.store.set({ log: null })}
  >
    <pre class="log" tabindex="0">${state.log.text ? visible(state.log.text) : t("log.empty")}</pre>
  <//>`;
}

/** @param {{ title: string, children?: any, onClose: () => void }} props */
function Explaining({ title, children, onClose }) {
  return html`<${Dialog} labelledby="explaining-title" kind="dialog-explain" onCancel=${onClose}
    ><div class="panel-head">
      <h2 id="explaining-title">${title}</h2>
      <button type="button" class="icon-button" aria-label=${t("app.close")} onClick=${onClose}><${Icon} name="close" /></button>
    </div>
    ${children}<//
  >`;
}
