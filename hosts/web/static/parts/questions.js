/**
 * Where each waiting question stands (SPEC 7.2, 7.4): in the timeline, in its App's own place, above everything, or as a line that
 * opens it. Pure, but for the dialog.
 */
/** @import { Interaction, Mirror, PageState } from "../types.d.ts" */
import * as mirrors from "../mirror.js";
import { usePage } from "../page.js";
import { EMPTY_FORM } from "../store.js";
import { html } from "../vendor/htm-preact.js";
import { Dialog } from "./basics.js";
import { Card } from "./card.js";

/** @typedef {{ dialog: Interaction | null, own: Interaction[], lines: Interaction[] }} Places */

/** @param {PageState} state @param {Mirror} mirror @returns {Places} */
export function placesOf(state, mirror) {
  const shown = mirrors.front(mirror);
  /** @type {Places} */
  const places = { dialog: null, own: [], lines: [] };
  for (const question of mirrors.waitingQuestions(mirror)) {
    const isOfAgent = question.source === "agent_tool";
    const isOwn = shown !== null && question.owner_instance_id === shown.instance_id;
    const isOver = question.place === "modal" && !state.putOff.has(question.interaction_id);
    const mayLieOver = isOfAgent ? shown !== null : question.source === "runtime_policy" || isOwn;
    if (isOver && mayLieOver && places.dialog === null) places.dialog = question;
    else if (isOwn && question.place !== "modal") places.own.push(question);
    else if (!isOfAgent || shown !== null) places.lines.push(question);
  }
  return places;
}

/** @param {{ state: PageState, mirror: Mirror, question: Interaction }} props */
export function QuestionDialog({ state, mirror, question }) {
  const page = usePage();
  return html`<${Dialog}
    key=${question.interaction_id}
    labelledby=${`modal-${question.interaction_id}-title`}
    kind="dialog-question"
    onCancel=${() => page.putOff(question.interaction_id, true)}
  >
    <${Card}
      mirror=${mirror}
      question=${question}
      form=${state.forms.get(question.interaction_id) ?? EMPTY_FORM}
      answered=${state.answered}
      heading="h2"
      where="modal"
    />
  <//>`;
}
