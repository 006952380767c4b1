/** The conversation and the Apps that run, as tabs. Arrow keys move between them;
 * Enter or a click brings one to the front, in the kernel. */
/** @import { InstanceSummary, Mirror, PageState, SessionSummary } from "../types.d.ts" */
import { appTitle, t, tOr, wordsOfCode } from "../i18n/words.js";
import * as mirrors from "../mirror.js";
import { usePage } from "../page.js";
import { html, useEffect, useRef } from "../vendor/htm-preact.js";
import { oneLine } from "../visible.js";
import { AppSign, Icon, Said } from "./basics.js";

/**
 * Apps whose last instance failed and left its session open.
 * @param {PageState} state
 * @param {Mirror} mirror
 * @returns {SessionSummary[]}
 */
export function failedApps(state, mirror) {
  const alive = new Set(mirrors.liveApps(mirror).map((one) => one.app_scope));
  return state.sessions.filter((one) => one.failed && one.state === "open" && !alive.has(one.app_scope));
}

/** What is shown: `chat`, an App in front, or a failed one this page turned to. @param {PageState} state @param {Mirror} mirror */
export function shownTab(state, mirror) {
  if (state.failedApp && failedApps(state, mirror).some((one) => one.app_scope === state.failedApp)) return `failed-${state.failedApp}`;
  return mirrors.front(mirror)?.instance_id ?? mirrors.CHAT;
}

/** Arrow keys, Home and End move the keyboard from tab to tab. @param {KeyboardEvent} event */
function move(event) {
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const list = /** @type {HTMLElement} */ (event.currentTarget);
  const tabs = /** @type {HTMLElement[]} */ ([...list.querySelectorAll("[role=tab]")]);
  const at = tabs.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  tabs[step === -Infinity ? 0 : step === Infinity ? tabs.length - 1 : (at + step + tabs.length) % tabs.length]?.focus();
}

/** @param {{ state: PageState, mirror: Mirror }} props */
export function AppsBar({ state, mirror }) {
  const page = usePage();
  const shown = shownTab(state, mirror);
  const waiting = mirrors.waitingQuestions(mirror);
  const chatWaits = waiting.filter((one) => one.source === "agent_tool").length;
  return html`<div class="tabs" role="tablist" aria-label=${t("app.apps")} onKeyDown=${move}>
    <${Tab}
      id=${mirrors.CHAT}
      isShown=${shown === mirrors.CHAT}
      sign=${html`<span class="sign sign-chat" aria-hidden="true"><${Icon} name="chat" /></span>`}
      title=${t("app.conversation")}
      word=""
      unread=${mirrors.chatState(mirror).unread ?? 0}
      waits=${chatWaits}
      busy=${0}
      onTurn=${() => void page.turnTo(mirrors.CHAT)}
    />
    ${mirrors
      .liveApps(mirror)
      .map(
        (one) =>
          html`<${AppTab}
            key=${one.instance_id}
            instance=${one}
            isShown=${shown === one.instance_id}
            waits=${waiting.filter((question) => question.owner_instance_id === one.instance_id).length}
          />`,
      )}
    ${failedApps(state, mirror).map(
      (one) =>
        html`<${FailedTab} key=${`failed-${one.app_scope}`} session=${one} isShown=${shown === `failed-${one.app_scope}`} />`,
    )}
  </div>`;
}

/** @param {{ session: SessionSummary, isShown: boolean }} props */
function FailedTab({ session, isShown }) {
  const page = usePage();
  return html`<${Tab}
    id=${`failed-${session.app_scope}`}
    isShown=${isShown}
    isBad=${true}
    sign=${html`<${AppSign} scope=${session.app_scope} title=${appTitle(session)} />`}
    title=${oneLine(appTitle(session), 40)}
    word=${`${t("tab.failed")}: ${wordsOfCode(session.error ?? "unknown")}`}
    unread=${0}
    waits=${0}
    busy=${0}
    onTurn=${() => void page.turnTo("", session.app_scope)}
  />`;
}

/** @param {{ instance: InstanceSummary, isShown: boolean, waits: number }} props */
function AppTab({ instance, isShown, waits }) {
  const page = usePage();
  const word = tOr(`state.${instance.state}`, oneLine(instance.state, 20));
  return html`<${Tab}
    id=${instance.instance_id}
    isShown=${isShown}
    sign=${html`<${AppSign} scope=${instance.app_scope} title=${appTitle(instance)} />`}
    title=${oneLine(appTitle(instance), 40)}
    word=${word}
    unread=${0}
    waits=${waits}
    busy=${instance.open_calls}
    onTurn=${() => void page.turnTo(instance.instance_id)}
  />`;
}

/**
 * @typedef {object} TabProps unread, waits and busy are how many
 * @property {string} id @property {boolean} isShown @property {boolean} [isBad] @property {any} sign @property {string} title
 * @property {string} word @property {number} unread @property {number} waits @property {number} busy @property {() => void} onTurn
 */

/** @param {TabProps} props */
function Tab({ id, isShown, isBad, sign, title, word, unread, waits, busy, onTurn }) {
  const tab = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (isShown) tab.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [isShown]);
  const count = unread + waits;
  const said = [
    waits ? t("tab.waits", { count: waits }) : "",
    unread ? t("tab.unread", { count: unread }) : "",
    busy ? t("tab.busy", { count: busy }) : "",
  ].filter(Boolean);
  return html`<button
    type="button"
    role="tab"
    ref=${tab}
    id=${`tab-${id}`}
    class=${`tab ${isBad ? "tab-bad" : ""}`}
    aria-selected=${isShown ? "true" : "false"}
    aria-controls=${isShown ? "panel" : undefined}
    tabindex=${isShown ? 0 : -1}
    onClick=${onTurn}
    title=${[title, word, ...said].filter(Boolean).join(" · ")}
  >
    ${sign}<span class="tab-words"
      ><span class="tab-title"><${Said} text=${title} /></span>${word ? html`<span class="tab-state">${word}</span>` : null}</span
    >
    ${busy ? html`<span class="busy" aria-hidden="true"></span>` : null}
    ${count ? html`<span class=${`badge ${waits ? "badge-waits" : ""}`} aria-hidden="true">${count}</span>` : null}
    ${said.length ? html`<span class="hidden">, ${said.join(", ")}</span>` : null}
  </button>`;
}
