/**
 * How the three kinds of question are answered. The kernel judges (forms.js); here stand the controls, their labels, and the words of a
 * refusal beside the field it names.
 */
/** @import { Detail, Field, Form, Interaction } from "../types.d.ts" */
import { NUMBER, fieldsAnswer } from "../forms.js";
import { numberWords, t } from "../i18n/words.js";
import { usePage } from "../page.js";
import { html } from "../vendor/htm-preact.js";
import { codePoints, oneLine, visible } from "../visible.js";
import { Said } from "./basics.js";

/** @typedef {{ id: string, question: Interaction, form: Form }} Props */

/** @param {{ question: Interaction, form: Form }} props */
function Decline({ question, form }) {
  const page = usePage();
  const label = question.request.cancel_label ?? t("card.decline");
  return html`<button type="button" disabled=${form.isSent} onClick=${() => void page.forms.answer(question, { declined: true })}>
    <${Said} text=${label} most=${60} />
  </button>`;
}

/** @param {Props} props */
export function ConfirmForm({ question, form }) {
  const page = usePage();
  const say = (/** @type {boolean} */ approved) => void page.forms.answer(question, { approved });
  return html`<div class="card-buttons">
    <button type="button" class="primary" disabled=${form.isSent} onClick=${() => say(true)}>
      <${Said} text=${question.request.approve_label ?? t("card.yes")} most=${80} />
    </button>
    <button type="button" disabled=${form.isSent} onClick=${() => say(false)}>
      <${Said} text=${question.request.cancel_label ?? t("card.no")} most=${80} />
    </button>
  </div>`;
}

/** @param {Props} props */
export function ChoiceForm(props) {
  return props.question.request.mode === "button" ? html`<${ButtonChoice} ...${props} />` : html`<${ListedChoice} ...${props} />`;
}

/** One press is the answer. @param {Props} props */
function ButtonChoice({ id, question, form }) {
  const page = usePage();
  return html`<div class="choice-buttons" role="group" aria-labelledby=${`${id}-title`}>
    ${(question.request.actions ?? []).map(
      (action) =>
        html`<button
          type="button"
          key=${action.id}
          class="choice-button"
          disabled=${form.isSent}
          onClick=${() => void page.forms.answer(question, { action_ids: [action.id] })}
        >
          <span><${Said} text=${action.label} /></span>
          ${action.description ? html`<small dir="auto">${visible(action.description)}</small>` : null}
        </button>`,
    )}
    <${Decline} question=${question} form=${form} />
  </div>`;
}

/** One or more of a list, then sent. @param {Props} props */
function ListedChoice({ id, question, form }) {
  const page = usePage();
  const isMany = question.request.mode === "multi-choice";
  const toggle = (/** @type {string} */ one, /** @type {boolean} */ isOn) =>
    page.forms.choose(question.interaction_id, isMany ? [...form.chosen.filter((other) => other !== one), ...(isOn ? [one] : [])] : [one]);
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (form.chosen.length) void page.forms.answer(question, { action_ids: form.chosen });
    else page.store.setForm(question.interaction_id, { trouble: t("card.choose") });
  };
  return html`<form onSubmit=${send} novalidate>
    <fieldset disabled=${form.isSent}>
      <legend>${t(isMany ? "card.many" : "card.one")}</legend>
      ${(question.request.actions ?? []).map(
        (action) =>
          html`<label key=${action.id} class="choice-row">
            <input
              type=${isMany ? "checkbox" : "radio"}
              name=${id}
              value=${action.id}
              checked=${form.chosen.includes(action.id)}
              onChange=${(/** @type {any} */ event) => toggle(action.id, event.currentTarget.checked)}
            />
            <span
              ><span><${Said} text=${action.label} /></span
              >${action.description ? html`<small dir="auto">${visible(action.description)}</small>` : null}</span
            ></label
          >`,
      )}
    </fieldset>
    <div class="card-buttons">
      <button class="primary" disabled=${form.isSent}>${form.isSent ? t("card.sending") : t("card.send")}</button>
      <${Decline} question=${question} form=${form} />
    </div>
  </form>`;
}

/** @param {Props} props */
export function InputForm({ id, question, form }) {
  const page = usePage();
  const fields = question.request.fields ?? [];
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    void page.forms.answer(question, fieldsAnswer(fields, form)).then(() => turnToError(id));
  };
  return html`<form onSubmit=${send} novalidate>
    ${fields.map(
      (field, index) =>
        html`<${FieldRow} key=${field.id} id=${`${id}-${index}`} question=${question} field=${field} form=${form} />`,
    )}
    <div class="card-buttons">
      <button class="primary" disabled=${form.isSent}>
        ${form.isSent ? t("card.sending") : html`<${Said} text=${question.request.submit_label ?? t("card.send")} most=${60} />`}
      </button>
      <${Decline} question=${question} form=${form} />
    </div>
    <p class="hint">${t("field.secret")}</p>
  </form>`;
}

/** The keyboard goes to the field that was refused. @param {string} id */
function turnToError(id) {
  setTimeout(
    () => /** @type {HTMLElement | null} */ (document.querySelector(`[id^="${CSS.escape(id)}"][aria-invalid="true"]`))?.focus(),
    0,
  );
}

/** @param {{ id: string, question: Interaction, field: Field, form: Form }} props */
function FieldRow({ id, question, field, form }) {
  const page = usePage();
  const text = form.values[field.id] ?? "";
  const error = form.errors[field.id];
  const given = {
    id,
    value: text,
    readOnly: form.isSent,
    placeholder: field.placeholder ? oneLine(field.placeholder) : undefined,
    autocomplete: "off",
    "aria-describedby": `${id}-hint${error ? ` ${id}-error` : ""}`,
    "aria-invalid": error ? "true" : undefined,
    "aria-required": field.required ? "true" : undefined,
    onInput: (/** @type {any} */ event) => page.forms.type(question.interaction_id, field.id, event.currentTarget.value),
  };
  return html`<div class="field">
    <label for=${id}
      ><${Said} text=${field.label} />${field.required ? html`<span class="required"> · ${t("field.required")}</span>` : null}</label
    >
    ${field.type === "textarea"
      ? html`<textarea rows="3" ...${given} onKeyDown=${sendByKey}></textarea>`
      : html`<input type="text" inputmode=${field.type === "number" ? "decimal" : undefined} ...${given} />`}
    <p class="hint" id=${`${id}-hint`}>${hintOf(field, text)}</p>
    ${error ? html`<p class="error" id=${`${id}-error`} role="alert">${errorOf(field, error.detail, text)}</p>` : null}
  </div>`;
}

/** Ctrl+Enter sends from a field of many lines. @param {KeyboardEvent} event */
function sendByKey(event) {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  /** @type {HTMLTextAreaElement} */ (event.currentTarget).form?.requestSubmit();
}

/** What a field takes. @param {Field} field @param {string} text */
function hintOf(field, text) {
  if (field.type === "number") return rangeOf(field) || t("field.number_hint");
  const words = [];
  if (field.min_length) words.push(t("field.at_least", { low: field.min_length }));
  if (field.max_length !== undefined) words.push(t("field.length", { count: codePoints(text), max: field.max_length }));
  return words.join(" · ");
}

/** @param {Field} field */
function rangeOf(field) {
  const { minimum, maximum } = field;
  if (minimum !== undefined && maximum !== undefined) return t("field.range", { low: numberWords(minimum), high: numberWords(maximum) });
  if (minimum !== undefined) return t("field.range_low", { low: numberWords(minimum) });
  return maximum !== undefined ? t("field.range_high", { high: numberWords(maximum) }) : "";
}

/** The kernel's refusal of a field in the words of this page. @param {Field} field @param {Detail} detail @param {string} text */
function errorOf(field, detail, text) {
  const expected = detail.expected ?? "";
  if (expected.startsWith("a value")) return t("field.required_error");
  if (expected === "number") return t(NUMBER.test(text.trim()) ? "field.number_big" : "field.number");
  if (expected.startsWith("a number within")) return t("field.range_error", { range: rangeOf(field) });
  if (expected === "one line") return t("field.line");
  const bounds = /^(\d+) to (\d+) code points$/.exec(expected);
  if (bounds) return t("field.length_error", { low: bounds[1], high: bounds[2], count: detail.got_size ?? codePoints(text) });
  return visible(expected || detail.hint || "");
}
