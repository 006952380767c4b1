/**
 * Answering a question: what is typed, the kernel's word on it, and the draft every view shares (SPEC 7.3).
 * 1. An answer is judged by the kernel alone: what it refuses comes back to the field it names, with its words.
 * 2. Text is sent as it was typed; only what is a number in JSON becomes one. `1,5` and `１` stay text, and are refused as such.
 * 3. A draft is saved a moment after the last key, and again after the kernel came back without it; one from another view is taken over
 *    while nobody types here.
 */
/** @import { Draft, Field, Form, Interaction } from "./types.d.ts" */
import { isWaiting } from "./mirror.js";
import { EMPTY_FORM } from "./store.js";
import { wordsOfCode } from "./i18n/words.js";

const SAVE_AFTER_MS = 400;
export const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
const FIELD_POINTER = "/answer/fields/";

export class Forms {
  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    /** @type {Map<string, ReturnType<typeof setTimeout>>} */
    this.timers = new Map();
    /** @type {Set<string>} questions whose form has the keyboard here */
    this.typing = new Set();
  }

  /** @param {string} id @returns {Form} */
  of(id) {
    return this.page.state.forms.get(id) ?? EMPTY_FORM;
  }

  /** Send again what is typed here and a kernel that was started anew does not have. */
  restore() {
    for (const [id, form] of this.page.state.forms) {
      const question = this.page.state.mirror?.interactions.get(id);
      if (!question || !isWaiting(question) || question.draft || !hasContent(form)) continue;
      this.page.store.setForm(id, { saved: "" });
      this.#saveSoon(id);
    }
  }

  /** Take over what other views typed, and forget what ended. */
  follow() {
    const { mirror, forms } = this.page.state;
    if (mirror === null) return;
    for (const question of mirror.interactions.values()) {
      if (!isWaiting(question)) continue;
      const form = this.of(question.interaction_id);
      const theirs = question.draft ? JSON.stringify(question.draft) : "";
      if (theirs === form.saved || this.typing.has(question.interaction_id)) continue;
      this.page.store.setForm(question.interaction_id, { ...formOf(question), saved: theirs, errors: {} });
    }
    const ended = [...forms.keys()].filter((id) => {
      const one = mirror.interactions.get(id);
      return one !== undefined && !isWaiting(one);
    });
    if (ended.length) this.page.store.set({ forms: new Map([...forms].filter(([id]) => !ended.includes(id))) });
  }

  /** @param {string} id @param {string} field @param {string} text */
  type(id, field, text) {
    const form = this.of(id);
    const errors = { ...form.errors };
    delete errors[field];
    this.page.store.setForm(id, { values: { ...form.values, [field]: text.toWellFormed() }, errors, trouble: "" });
    this.#saveSoon(id);
  }

  /** @param {string} id @param {string[]} chosen */
  choose(id, chosen) {
    this.page.store.setForm(id, { chosen, trouble: "" });
    this.#saveSoon(id);
  }

  /** @param {string} id */
  #saveSoon(id) {
    clearTimeout(this.timers.get(id));
    this.timers.set(
      id,
      setTimeout(() => void this.#save(id), SAVE_AFTER_MS),
    );
  }

  /** @param {string} id */
  async #save(id) {
    const question = this.page.state.mirror?.interactions.get(id);
    const form = this.of(id);
    if (!question || !isWaiting(question) || form.isSent) return;
    const draft = draftOf(form);
    const saved = Object.keys(draft).length ? JSON.stringify(draft) : "";
    this.page.store.setForm(id, { saved });
    await this.page.ask("draft.save", { interaction_id: id, draft });
  }

  /** Send an answer; a refusal goes to the field it names. @param {Interaction} question @param {object} answer */
  async answer(question, answer) {
    const id = question.interaction_id;
    if (this.of(id).isSent) return;
    clearTimeout(this.timers.get(id));
    this.page.store.setForm(id, { isSent: true, errors: {}, trouble: "" });
    this.page.noteAnswered(id);
    const outcome = await this.page.ask("interaction.answer", { interaction_id: id, answer, shown_digest: question.shown_digest });
    if (outcome.ok) return this.page.noteAnswered(id); // as the view that it was sent by in the end
    const detail = outcome.detail ?? {};
    const field = (detail.pointer ?? "").startsWith(FIELD_POINTER) ? (detail.pointer ?? "").slice(FIELD_POINTER.length) : "";
    const isNamed = (question.request.fields ?? []).some((one) => one.id === field);
    this.page.store.setForm(id, {
      isSent: false,
      errors: isNamed ? { [field]: { code: outcome.code, detail } } : {},
      trouble: isNamed ? "" : wordsOfCode(outcome.code),
    });
  }
}

/** What is typed so far, from the kernel's draft. @param {Interaction} question @returns {Pick<Form, "values" | "chosen">} */
function formOf(question) {
  const fields = question.draft?.fields ?? {};
  const known = (question.request.fields ?? []).filter((field) => field.id in fields);
  const offered = new Set((question.request.actions ?? []).map((action) => action.id));
  return {
    values: Object.fromEntries(known.map((field) => [field.id, String(fields[field.id])])),
    chosen: (question.draft?.action_ids ?? []).filter((id) => offered.has(id)),
  };
}

/** @param {Form} form */
const hasContent = (form) => form.chosen.length > 0 || Object.values(form.values).some((text) => text !== "");

/** @param {Form} form @returns {Draft} */
function draftOf(form) {
  const fields = Object.fromEntries(Object.entries(form.values).filter(([, text]) => text !== ""));
  return { ...(Object.keys(fields).length ? { fields } : {}), ...(form.chosen.length ? { action_ids: form.chosen } : {}) };
}

/** The value that a text is for a field (rule 2). @param {Field} field @param {string} text @returns {string | number} */
export function valueOf(field, text) {
  const words = text.trim();
  if (field.type !== "number" || !NUMBER.test(words)) return text;
  const value = Number(words);
  return Number.isFinite(value) && Math.abs(value) < 2 ** 53 ? value : text;
}

/** The answer to an input: every field that has something. @param {Field[]} fields @param {Form} form */
export function fieldsAnswer(fields, form) {
  const filled = fields.filter((field) => (form.values[field.id] ?? "") !== "");
  return { fields: Object.fromEntries(filled.map((field) => [field.id, valueOf(field, form.values[field.id])])) };
}
