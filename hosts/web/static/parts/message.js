/** One entry of the timeline: text, card, answer, task, or something of an unknown kind. Drawn again only when something of it changed. */
/** @import { Form, Interaction, MessageSummary, Mirror, Outgoing, Task } from "../types.d.ts" */
import { dayAndTime, t, timeOfDay, tOr, wordsOfCode } from "../i18n/words.js";
import { usePage } from "../page.js";
import { Component, html } from "../vendor/htm-preact.js";
import { oneLine, visible } from "../visible.js";
import { Progress, Said } from "./basics.js";
import { Card } from "./card.js";
import { Markdown } from "./markdown.js";

export const TEXT = "lineup.v1.message.text";
export const CARD = "lineup.v1.interaction";
export const ANSWER = "lineup.v1.interaction.answer";

/**
 * @typedef {{ message: MessageSummary, mirror: Mirror, question?: Interaction, form?: Form, answered: ReadonlyMap<string, string>,
 *   isFirst: boolean,
 *   summary?: string, lang: string, hasFront: boolean }} Props
 */

export class Message extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    const now = /** @type {any} */ (this.props);
    return ["message", "question", "form", "isFirst", "summary", "lang", "hasFront"].some((name) => now[name] !== next[name]);
  }

  render() {
    const { message, summary, isFirst } = /** @type {Props} */ (/** @type {unknown} */ (this.props));
    const kind =
      message.type === CARD
        ? "card"
        : message.task
          ? "task"
          : message.type === ANSWER
            ? "answer"
            : message.type === TEXT
              ? "text"
              : "inert";
    return html`<article
      class=${`entry entry-${message.direction} entry-${kind} ${isFirst ? "entry-first" : ""}`}
      data-number=${message.number}
      aria-label=${`${whoOf(message)}, ${timeOfDay(message.created_at)}`}
    >
      ${summary ? html`<p class="summary">${summaryWords(summary)}</p>` : null}
      ${isFirst && kind !== "card" ? html`<${Head} message=${message} />` : null} ${this.body(kind)}
    </article>`;
  }

  /** @param {string} kind */
  body(kind) {
    const props = /** @type {Props} */ (/** @type {unknown} */ (this.props));
    const { message, question } = props;
    if (kind === "card") {
      return question ? html`<${Card} ...${props} heading="h2" where="inline" />` : html`<${Over} message=${message} />`;
    }
    if (message.task) return html`<${TaskCard} task=${message.task} isFolded=${message.folded} />`;
    if (kind === "answer")
      return html`<div class="bubble bubble-answer">
        <span class="muted">${t("message.answer")}</span> <bdi>${visible(message.text)}</bdi>
      </div>`;
    if (kind === "inert")
      return html`<div class="bubble bubble-inert">
        <p class="muted">${t("message.inert", { type: oneLine(message.type, 60) })}</p>
        <p class="plain">${visible(message.text)}</p>
      </div>`;
    return html`<div class="bubble"><${Markdown} tree=${message.tree} text=${message.text} /></div>
      ${message.direction === "out" ? html`<${Delivery} message=${message} />` : null}`;
  }
}

/** @param {MessageSummary} message */
const whoOf = (message) => tOr(`who.${message.author}`, oneLine(message.author, 20));

/** @param {{ message: MessageSummary }} props */
const Head = ({ message }) =>
  html`<p class="entry-head">
    <span class=${`who who-${message.author === "person" ? "person" : message.author === "demo" ? "demo" : "agent"}`}
      >${whoOf(message)}</span
    >
    <time datetime=${message.created_at} title=${dayAndTime(message.created_at)}>${timeOfDay(message.created_at)}</time>
  </p>`;

/** Whether a line of the person's has arrived. @param {{ message: MessageSummary }} props */
function Delivery({ message }) {
  if (message.state === "refused")
    return html`<p class="delivery error">${t("message.refused", { why: wordsOfCode(message.code ?? "unknown") })}</p>`;
  const arrived = message.state === "acknowledged";
  return html`<p class=${`delivery ${arrived ? "" : "delivery-waits"}`}>
    ${arrived ? "✓ " : ""}${t(arrived ? "message.acknowledged" : "message.pending")}
  </p>`;
}

/** A card nobody knows more of. @param {{ message: MessageSummary }} props */
const Over = ({ message }) =>
  html`<section class="card">
    <p class="plain" dir="auto">${visible(message.text)}</p>
    <p class="card-outcome">${t("card.over")}</p>
  </section>`;

/** @param {{ task: Task, isFolded: boolean }} props */
export function TaskCard({ task, isFolded }) {
  const state = tOr(`state.${task.state}`, oneLine(task.state, 20));
  if (isFolded)
    return html`<p class="task-earlier">
      <span class="muted">${t("message.earlier")}:</span> <${Said} text=${task.title} most=${80} /> · ${state}
    </p>`;
  return html`<section class=${`task task-${oneLine(task.state, 20)}`} aria-label=${`${t("task.label")}: ${oneLine(task.title, 80)}`}>
    <div class="task-head">
      <span class="task-title"><${Said} text=${task.title} /></span><span class=${`chip chip-${oneLine(task.state, 20)}`}>${state}</span>
    </div>
    ${typeof task.progress === "number"
      ? html`<${Progress} percent=${task.progress} label=${t("task.progress", { title: oneLine(task.title, 80) })} />`
      : null}
  </section>`;
}

/** What calls did, in the language of the page: the App says it in one fixed form. @param {string} text */
function summaryWords(text) {
  const form = /^(\d+) calls?: (.*)$/.exec(text);
  if (form === null) return oneLine(text, 160);
  const said = form[2].split(", ").map((part) => {
    const [count, ...status] = part.split(" ");
    return `${count} ${tOr(`state.${status.join(" ")}`, status.join(" "))}`;
  });
  return oneLine(t("summary.calls", { count: Number(form[1]), said: said.join(", ") }), 200);
}

/** A line of the person's that the kernel has not said yet. @param {{ sent: Outgoing }} props */
export function Sent({ sent }) {
  const page = usePage();
  const again = () => {
    page.unsay(sent.key);
    void page.say(sent.text);
  };
  const edit = () => {
    page.unsay(sent.key);
    window.dispatchEvent(new CustomEvent("lineup-edit", { detail: sent.text }));
  };
  return html`<article class="entry entry-out entry-text entry-sent">
    <div class="bubble"><p class="plain" dir="auto">${visible(sent.text)}</p></div>
    ${
      sent.state === "sending"
        ? html`<p class="delivery delivery-waits">${t("message.sending")}</p>`
        : html`<div class="delivery">
            <p class="error" role="alert">
              ${sent.state === "lost" ? t("message.lost") : t("message.refused", { why: wordsOfCode(sent.code ?? "unknown") })}
            </p>
            <div class="card-buttons">
              <button type="button" onClick=${again}>${t("message.again")}</button
              ><button type="button" onClick=${edit}>${t("message.edit")}</button>
              <button type="button" onClick=${() => page.unsay(sent.key)}>${t("message.forget")}</button>
            </div>
          </div>`
    }
  </article>`;
}
