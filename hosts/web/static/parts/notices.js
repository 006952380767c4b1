/** What LineUp itself has to say, in a strip of its own: the connection, what waits, toasts. It takes room; it covers nothing. */
/** @import { Mirror, PageState, Toast } from "../types.d.ts" */
import { t, toolTitle, tOr } from "../i18n/words.js";
import * as mirrors from "../mirror.js";
import { usePage } from "../page.js";
import { html } from "../vendor/htm-preact.js";
import { oneLine, visible } from "../visible.js";
import { Icon, Said } from "./basics.js";
import { askerOf } from "./card.js";

/** One word for the whole connection. @param {PageState} state */
export function linkWord(state) {
  if (state.link === "connecting" && state.mirror !== null) return "away"; // the next try of many
  if (state.link !== "open") return state.link;
  return state.isStuck && state.phase === "up" ? "stuck" : state.phase;
}

/** @param {{ state: PageState }} props */
export function LinkPill({ state }) {
  const word = linkWord(state);
  const agent = state.mirror?.agent ?? {};
  return html`<p class="pill" role="status">
    <span class=${`dot dot-${word}`} aria-hidden="true"></span
    ><span class="pill-word">${t(`link.${word}`)}</span>
    ${word === "up"
      ? html`<span class="muted pill-agent">${t(agent.connected ? (agent.demo ? "agent.demo" : "agent.connected") : "agent.away")}</span>`
      : null}
  </p>`;
}

/** @param {{ state: PageState }} props */
function Banner({ state }) {
  const page = usePage();
  const word = linkWord(state);
  if (word === "up" || word === "refused") return null;
  const isFirst = state.mirror === null && word === "connecting";
  const why = tOr(`kernel.${state.code}`, "") || tOr(`code.${state.code}`, oneLine(state.hint || state.code || "unknown", 200));
  const text = isFirst ? t("banner.first") : word === "connecting" ? t("banner.connecting") : t(`banner.${word}`, { why });
  const isAtWork = word === "connecting";
  return html`<div class=${`banner ${word === "failed" || word === "ended" ? "banner-bad" : ""}`} role=${isAtWork ? "status" : "alert"}>
    ${isAtWork || word === "away" || word === "crowded" ? html`<span class="spinner" aria-hidden="true"></span>` : null}
    <div class="banner-words">
      <p>${text}</p>
      ${word === "failed" && state.hint ? html`<p class="muted">${visible(state.hint)}</p>` : null}
    </div>
    ${isAtWork ? null : html`<button type="button" onClick=${() => page.retry()}>${t("banner.retry")}</button>`}
  </div>`;
}

/**
 * Questions that are not drawn whole in what is shown.
 * @param {{ mirror: Mirror, questions: import("../types.d.ts").Interaction[] }} props
 */
function Waiting({ mirror, questions }) {
  const page = usePage();
  if (questions.length === 0) return null;
  const open = (/** @type {import("../types.d.ts").Interaction} */ one) => {
    page.putOff(one.interaction_id, false);
    if (one.place !== "modal") void page.act("interaction.move", { interaction_id: one.interaction_id, place: "modal" });
  };
  return html`<ul class="waiting" aria-label=${t("card.waits", { count: questions.length })}>
    ${questions.map(
      (one) =>
        html`<li key=${one.interaction_id}>
          <span class="waiting-words"
            ><span class="muted">${askerOf(mirror, one)}:</span> <${Said} text=${one.request.title} most=${80}
          /></span>
          <button type="button" onClick=${() => open(one)}>
            ${t("card.open")}<span class="hidden"> ${oneLine(one.request.title, 60)}</span>
          </button>
        </li>`,
    )}
  </ul>`;
}

/** A call that waits for its App to be in front: the way back is offered. @param {{ mirror: Mirror }} props */
function WaitingCalls({ mirror }) {
  const page = usePage();
  const waiting = mirrors
    .openCalls(mirror)
    .filter(
      (call) =>
        call.status === "waiting_for_app" &&
        ["background", "suspended"].includes(mirror.instances.get(call.instance_id ?? "")?.state ?? ""),
    );
  if (waiting.length === 0) return null;
  return html`<ul class="waiting">
    ${waiting
      .slice(0, 3)
      .map(
        (call) =>
          html`<li key=${call.number}>
            <span class="waiting-words"
              >${t("app.waiting", { title: oneLine(mirrors.titleOf(mirror, call.app_scope), 60), call: oneLine(toolTitle(call), 60) })}</span
            >
            <button type="button" onClick=${() => void page.turnTo(call.instance_id ?? "")}>${t("apps.front")}</button>
          </li>`,
      )}
  </ul>`;
}

/** @param {{ toasts: Toast[] }} props */
function Toasts({ toasts }) {
  const page = usePage();
  return html`<div class="toasts" role="log" aria-live="polite" aria-label=${t("app.messages")}>
    ${toasts.map(
      (toast) =>
        html`<div key=${toast.key} class=${`toast toast-${toast.tone}`}>
          <p>${toast.from ? html`<strong><bdi>${toast.from}</bdi></strong> ` : null}<bdi>${toast.text}</bdi></p>
          ${toast.action ? html`<button type="button" class="primary" onClick=${toast.action.run}>${toast.action.label}</button>` : null}
          <button type="button" class="icon-button" aria-label=${t("app.close")} onClick=${() => page.dropToast(toast.key)}>
            <${Icon} name="close" />
          </button>
        </div>`,
    )}
  </div>`;
}

/** @param {{ state: PageState, questions: import("../types.d.ts").Interaction[] }} props */
export const Notices = ({ state, questions }) =>
  html`<section class="notices" aria-label=${t("app.notices")}>
    ${state.isExposed ? html`<p class="banner banner-bad">${t("banner.exposed")}</p>` : null}
    <${Banner} state=${state} />
    ${state.mirror ? html`<${WaitingCalls} mirror=${state.mirror} /><${Waiting} mirror=${state.mirror} questions=${questions} />` : null}
    <${Toasts} toasts=${state.toasts} />
  </section>`;
