/** App sessions: what was said while an App was in front, read only, and the way to go on with a closed one (SPEC 8.4). */
/** @import { Interaction, MessageSummary, PageState, SessionSummary } from "../types.d.ts" */
import { appTitle, dayAndTime, t, tOr } from "../i18n/words.js";
import { usePage } from "../page.js";
import { html, useEffect, useState } from "../vendor/htm-preact.js";
import { oneLine, visible } from "../visible.js";
import { AppSign, KeepsFocus, Said } from "./basics.js";
import { Markdown } from "./markdown.js";
import { CARD, TEXT, TaskCard } from "./message.js";

/** @param {{ state: PageState }} props */
export function History({ state }) {
  const page = usePage();
  const [read, setRead] = useState("");
  useEffect(() => void page.readSessions(), []);
  const session = state.sessions.find((one) => one.app_session_id === read);
  if (session) return html`<${Session} session=${session} state=${state} onBack=${() => setRead("")} />`;
  if (state.sessions.length === 0) return html`<p class="blank-row">${t("history.none")}</p>`;
  return html`<ul class="rows">
    ${state.sessions.map(
      (one) =>
        html`<li class="row" key=${one.number}>
          <div class="row-head">
            <${AppSign} scope=${one.app_scope} title=${appTitle(one)} /><strong><${Said} text=${appTitle(one)} most=${60} /></strong
            ><span class="chip">${t(`state.${one.state === "open" ? "open" : "closed"}`)}</span>
          </div>
          <p class="row-facts muted">
            ${dayAndTime(one.opened_at)} · ${t("history.said", { count: one.messages })}
            ${one.continues ? ` · ${t("history.continues")}` : ""}
          </p>
          <div class="row-acts">
            <button type="button" onClick=${() => setRead(one.app_session_id)}>
              ${t("history.read")}<span class="hidden"> ${oneLine(appTitle(one), 60)}, ${dayAndTime(one.opened_at)}</span></button
            ><${Continue} session=${one} />
          </div>
        </li>`,
    )}
  </ul>`;
}

/** @param {{ session: SessionSummary }} props */
function Continue({ session }) {
  const page = usePage();
  if (session.state !== "closed") return null;
  return html`<button
    type="button"
    title=${t("history.continue_hint")}
    onClick=${() => void page.act("sessions.continue", { app_session_id: session.app_session_id })}
  >
    ${t("history.continue")}<span class="hidden"> ${oneLine(appTitle(session), 60)}, ${dayAndTime(session.opened_at)}</span>
  </button>`;
}

/** What was asked, as it was drawn then. @param {{ question: Interaction }} props */
const Asked = ({ question }) =>
  html`<strong><${Said} text=${question.request.title} /></strong>
    <${Markdown} tree=${question.tree} text=${question.request.prompt ?? question.request.message ?? ""} />`;

/** @param {{ message: MessageSummary, question?: Interaction }} props */
function Line({ message, question }) {
  const body = message.task
    ? html`<${TaskCard} task=${message.task} isFolded=${false} />`
    : message.type === CARD && question
    ? html`<${Asked} question=${question} />`
    : message.type === TEXT
      ? html`<${Markdown} tree=${message.tree} text=${message.text} />`
      : html`<p class="plain" dir="auto">${visible(message.text)}</p>`;
  return html`<li>
    <p class="entry-head">
      <span class="who">${tOr(`who.${message.author}`, oneLine(message.author, 20))}</span>
      <time datetime=${message.created_at}>${dayAndTime(message.created_at)}</time>
    </p>
    ${body}
  </li>`;
}

/** @param {{ session: SessionSummary, state: PageState, onBack: () => void }} props */
function Session({ session, state, onBack }) {
  const page = usePage();
  const [said, setSaid] = useState(/** @type {MessageSummary[] | null} */ (null));
  const [more, setMore] = useState(false);
  const read = (/** @type {MessageSummary[]} */ known) =>
    void page
      .act("sessions.show", { app_session_id: session.app_session_id, ...(known.length ? { before: known[0].number } : {}) })
      .then((outcome) => {
        if (!outcome.ok) return;
        setSaid([...outcome.value.messages, ...known]);
        setMore(outcome.value.more);
      });
  useEffect(() => read([]), [session.app_session_id]);
  return html`<${KeepsFocus}
    ><button type="button" class="quiet" onClick=${onBack}>← ${t("history.back")}</button>
    <div class="row-head">
      <${AppSign} scope=${session.app_scope} title=${appTitle(session)} /><strong><${Said} text=${appTitle(session)} most=${60} /></strong
      ><span class="chip">${t("history.readonly")}</span>
    </div>
    <div class="row-acts"><${Continue} session=${session} /></div>
    ${more && said ? html`<button type="button" class="quiet" onClick=${() => read(said)}>${t("history.older")}</button>` : null}
    ${
      said === null
        ? html`<span class="spinner" aria-hidden="true"></span>`
        : said.length === 0
          ? html`<p class="blank-row">${t("history.silent")}</p>`
          : html`<ol class="said">${said.map(
              (message) =>
                html`<${Line}
                  key=${message.number}
                  message=${message}
                  question=${state.mirror?.interactions.get(message.interaction_id ?? "")}
                />`,
            )}</ol>`
    }
  <//>`;
}
