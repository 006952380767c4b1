/**
 * A question of the Agent, an App or LineUp itself: who asks (the kernel's word), what, and how to answer it or what became of it.
 * 1. Who asks is our label; what is asked are words of others and stands apart from it.
 * 2. The same card is drawn in the timeline, above an App and in a dialog; where it stands changes nothing of it (SPEC 7.2).
 */
/** @import { Form, Interaction, Mirror } from "../types.d.ts" */
import { t, tOr, wordsOfCode } from "../i18n/words.js";
import { isWaiting, titleOf } from "../mirror.js";
import { usePage } from "../page.js";
import { html } from "../vendor/htm-preact.js";
import { oneLine } from "../visible.js";
import { Described } from "./describe.js";
import { ChoiceForm, ConfirmForm, InputForm } from "./card_forms.js";
import { Expires, KeepsFocus, Said } from "./basics.js";
import { Markdown } from "./markdown.js";

/** Who asks, by the kernel's word. @param {Mirror} mirror @param {Interaction} question @param {string} [author] of its entry */
export function askerOf(mirror, question, author) {
  if (question.source === "runtime_policy") return t("card.lineup");
  if (question.source === "agent_tool")
    return t(`${question.kind === "notice" ? "card.notice" : "card.asks"}${author === "demo" || isOfDemo(mirror, question) ? "_demo" : ""}`);
  const scope = question.owner_app_scope;
  return t("card.app", { app: oneLine(`${titleOf(mirror, scope)} (${scope})`, 120) });
}

/** Whether the call behind it came from the demo Agent. @param {Mirror} mirror @param {Interaction} question */
const isOfDemo = (mirror, question) =>
  [...mirror.calls.values()].some((call) => call.call_id === question.call_id && call.source === "demo");

/**
 * @typedef {object} CardProps
 * @property {Mirror} mirror @property {Interaction} question @property {Form} form @property {ReadonlyMap<string, string>} answered
 * @property {"h2" | "h3"} heading @property {"inline" | "modal"} where
 * @property {{ author: string }} [message] the entry it stands in, which outlives the call
 */

/** @param {CardProps} props */
export function Card({ mirror, question, form, answered, heading, where, message }) {
  const { request, kind } = question;
  const id = `${where}-${question.interaction_id}`;
  const waits = isWaiting(question);
  return html`<${KeepsFocus}
    as="section"
    class=${`card card-${kind} ${waits ? "card-waits" : ""}`}
    aria-labelledby=${`${id}-title`}
    data-question=${question.interaction_id}
  >
    <div class="card-head">
      <span class="card-asker">${askerOf(mirror, question, message?.author)}</span
      ><span class="card-number">#${question.number}</span>
      ${waits && question.expires_at ? html`<${Expires} at=${question.expires_at} />` : null}
    </div>
    ${heading === "h2"
      ? html`<h2 class="card-title" id=${`${id}-title`}><${Said} text=${request.title} /></h2>`
      : html`<h3 class="card-title" id=${`${id}-title`}><${Said} text=${request.title} /></h3>`}
    <${Markdown} tree=${question.tree} text=${request.prompt ?? request.message ?? ""} />
    ${kind === "notice"
      ? null
      : waits
      ? html`<${AnswerForm} id=${id} question=${question} form=${form} />`
      : html`<${Ended} question=${question} answered=${answered} />`}
    ${waits ? html`<${Place} question=${question} where=${where} hasFront=${mirror.focus.length > 0} />` : null}
  <//>`;
}

const FORMS = { choice: ChoiceForm, confirm: ConfirmForm, input: InputForm };

/** @param {{ id: string, question: Interaction, form: Form }} props */
function AnswerForm({ id, question, form }) {
  const page = usePage();
  const Kind = FORMS[/** @type {keyof typeof FORMS} */ (question.kind)];
  const isTyping = (/** @type {boolean} */ here) =>
    void (here ? page.forms.typing.add(question.interaction_id) : page.forms.typing.delete(question.interaction_id));
  return html`<div class="card-answer" onFocusIn=${() => isTyping(true)} onFocusOut=${() => isTyping(false)}>
    <${Kind} id=${id} question=${question} form=${form} />
    ${form.trouble ? html`<p class="error" role="alert">${form.trouble}</p>` : null}
  </div>`;
}

/**
 * Move it: the kernel says where it stands, in every view.
 * @param {{ question: Interaction, where: "inline" | "modal", hasFront: boolean }} props
 */
function Place({ question, where, hasFront }) {
  const page = usePage();
  const move = (/** @type {string} */ place) => void page.act("interaction.move", { interaction_id: question.interaction_id, place });
  if (where === "modal") {
    return html`<div class="card-place">
      <button type="button" class="quiet" onClick=${() => page.putOff(question.interaction_id, true)}>${t("card.later")}</button>
      ${question.source === "agent_tool"
        ? html`<button type="button" class="quiet" onClick=${() => move("inline")}>${t("card.inline")}</button>`
        : null}
    </div>`;
  }
  if (!hasFront || question.place === "modal") return null;
  return html`<div class="card-place"><button type="button" class="quiet" onClick=${() => move("modal")}>${t("card.modal")}</button></div>`;
}

/** What became of it, and by whom. @param {{ question: Interaction, answered: ReadonlyMap<string, string> }} props */
function Ended({ question, answered }) {
  const outcome = question.result?.outcome ?? question.status;
  const answer = question.result?.answer;
  const isElsewhere = Boolean(question.answered_by) && answered.get(question.interaction_id) !== question.answered_by;
  const isAnswered = outcome === "answered" || (answer !== undefined && answer !== null);
  const word = answer?.declined ? t("card.declined") : isAnswered ? t("card.answered") : tOr(`card.${outcome}`, oneLine(outcome));
  return html`<div class="card-ended">
    <p class="card-outcome">
      ${isElsewhere && isAnswered
        ? t("card.elsewhere", { view: oneLine(question.answered_by, 40) })
        : outcome === "failed"
        ? t("card.failed", { why: wordsOfCode(question.error_code ?? "unknown") })
        : word}
    </p>
    ${isAnswered && !answer?.declined ? html`<${Given} question=${question} answer=${answer} />` : null}
  </div>`;
}

/** The answer in the words that were shown. @param {{ question: Interaction, answer: any }} props */
function Given({ question, answer }) {
  const { request } = question;
  if (answer?.action_ids) {
    const chosen = (request.actions ?? []).filter((action) => answer.action_ids.includes(action.id));
    return html`<ul class="given">
      ${chosen.map((action) => html`<li key=${action.id}><${Said} text=${action.label} /></li>`)}
    </ul>`;
  }
  if (typeof answer?.approved === "boolean") {
    const label = answer.approved ? (request.approve_label ?? t("card.yes")) : (request.cancel_label ?? t("card.no"));
    return html`<ul class="given">
      <li><${Said} text=${label} /></li>
    </ul>`;
  }
  const rows = (answer?.fields ?? []).map((/** @type {any} */ row) => [row.id, row.text ?? row.number ?? null]);
  const labels = Object.fromEntries((request.fields ?? []).map((field) => [field.id, field.label]));
  return rows.length ? html`<${Described} value=${Object.fromEntries(rows)} labels=${labels} />` : null;
}
