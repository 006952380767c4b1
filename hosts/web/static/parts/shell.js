/** The whole page: the Apps at the side, what is shown in the middle, what was opened beside it, and what lies over everything. */
/** @import { Interaction, Mirror, PageState, PanelName } from "../types.d.ts" */
import { appTitle, t } from "../i18n/words.js";
import * as mirrors from "../mirror.js";
import { usePage } from "../page.js";
import { html, useEffect, useErrorBoundary, useState } from "../vendor/htm-preact.js";
import { AppHead, FailedApp, OwnQuestions, Surfaces } from "./app_panel.js";
import { AppsBar, failedApps, shownTab } from "./apps_bar.js";
import { Icon } from "./basics.js";
import { Composer } from "./composer.js";
import { ConsentDialog } from "./consent.js";
import { Command } from "./help.js";
import { LinkPill, Notices } from "./notices.js";
import { Panel } from "./panel.js";
import { QuestionDialog, placesOf } from "./questions.js";
import { Timeline } from "./timeline.js";
import { Log, Why } from "./why.js";

/** @type {readonly [Exclude<PanelName, "">, "activity" | "apps" | "help" | "history" | "key" | "parked" | "settings"][]} */
const PLACES = [
  ["apps", "apps"],
  ["activity", "activity"],
  ["history", "history"],
  ["permissions", "key"],
  ["parked", "parked"],
  ["help", "help"],
  ["settings", "settings"],
];

/** @param {{ state: PageState, theme: "light" | "dark" }} props */
export function Shell({ state, theme }) {
  const [broken] = useErrorBoundary((error) => reportError(error));
  if (broken)
    return html`<main class="alone">
      <h1>LineUp</h1>
      <p role="alert">${t("app.broken")}</p>
      <button type="button" class="primary" onClick=${() => location.reload()}>${t("app.reload")}</button>
    </main>`;
  if (state.link === "refused") return html`<${NoKey} />`;
  const { mirror } = state;
  const places = mirror ? placesOf(state, mirror) : null;
  const consents = mirror ? mirrors.waitingConsents(mirror) : [];
  return html`<div class=${`shell ${state.panel ? "shell-panel" : ""}`}>
    <a class="skip" href="#main">${t("app.skip")}</a>
    <${Side} state=${state} />
    <div class="middle">
      <${Notices} state=${state} questions=${places?.lines ?? []} />
      <main id="main" tabindex="-1">
        ${mirror
          ? html`<${Shown} state=${state} mirror=${mirror} own=${places?.own ?? []} theme=${theme} />`
          : html`<div class="blank"><span class="spinner" aria-hidden="true"></span></div>`}
      </main>
    </div>
    ${state.panel ? html`<${Panel} key=${state.panel} state=${state} />` : null}
    ${mirror && places?.dialog
      ? html`<${QuestionDialog} key=${places.dialog.interaction_id} state=${state} mirror=${mirror} question=${places.dialog} />`
      : null}
    <${Why} state=${state} /><${Log} state=${state} />
    ${consents.length ? html`<${ConsentDialog} key=${consents[0].request_id} consent=${consents[0]} waiting=${consents.length} />` : null}
  </div>`;
}

/** @param {{ state: PageState }} props */
function Side({ state }) {
  const page = usePage();
  const [isOpen, setIsOpen] = useState(false);
  const go = (/** @type {PanelName} */ name) => {
    setIsOpen(false);
    page.show(name);
  };
  return html`<header class=${`side ${isOpen ? "side-open" : ""}`}>
    <div class="brand">
      <h1>LineUp</h1>
      ${state.isDemo ? html`<span class="chip chip-demo">${t("app.demo")}</span>` : null}
      <button
        type="button"
        class="icon-button menu-button"
        aria-expanded=${isOpen ? "true" : "false"}
        aria-controls="places"
        aria-label=${t("app.menu")}
        onClick=${() => setIsOpen(!isOpen)}
      >
        <${Icon} name="menu" />
      </button>
    </div>
    ${state.mirror ? html`<${AppsBar} state=${state} mirror=${state.mirror} />` : null}
    <nav id="places" class="places" aria-label=${t("app.places")}>
      ${PLACES.filter(([name]) => name !== "parked" || state.parked.length > 0 || state.panel === "parked").map(
        ([name, icon]) =>
          html`<button type="button" key=${name} class="place" aria-pressed=${`${state.panel === name}`} onClick=${() => go(name)}>
            <${Icon} name=${icon} />${t(`${name}.title`)}
            ${name === "parked" && state.parked.length ? html`<span class="badge badge-waits">${state.parked.length}</span>` : null}
          </button>`,
      )}
    </nav>
    <${LinkPill} state=${state} />
  </header>`;
}

/** @param {{ state: PageState, mirror: Mirror, own: Interaction[], theme: "light" | "dark" }} props */
function Shown({ state, mirror, own, theme }) {
  const page = usePage();
  const tab = shownTab(state, mirror);
  const failed = tab.startsWith("failed-") ? failedApps(state, mirror).find((one) => `failed-${one.app_scope}` === tab) : undefined;
  const instance = failed ? null : mirrors.front(mirror);
  useEffect(() => {
    const waiting = mirrors.waitingQuestions(mirror).length + mirror.consents.size;
    document.title = `${waiting ? `(${waiting}) ` : ""}${instance ? appTitle(instance) : t("app.conversation")} · LineUp`;
  });
  return html`<div class="shown" id="panel" role="tabpanel" aria-labelledby=${`tab-${tab}`}>
    <section class="conversation" hidden=${tab !== mirrors.CHAT} aria-label=${t("app.conversation")}>
      <${Timeline} state=${state} mirror=${mirror} page=${page} /><${Composer} mirror=${mirror} text=${state.line} />
    </section>
    ${failed ? html`<${FailedApp} session=${failed} />` : null}
    <section class="app" hidden=${instance === null} aria-label=${instance ? appTitle(instance) : t("app.apps")}>
      ${instance
        ? html`<${AppHead} mirror=${mirror} instance=${instance} />
            <${OwnQuestions} state=${state} mirror=${mirror} questions=${own} />`
        : null}
      <div class="surfaces"><${Surfaces} mirror=${mirror} shown=${instance} theme=${theme} lang=${state.lang} link=${state.links} /></div>
    </section>
  </div>`;
}

/** The page came without its key, or with an old one. */
const NoKey = () =>
  html`<main class="alone">
    <h1>LineUp</h1>
    <h2>${t("refused.title")}</h2>
    <p>${t("refused.text")}</p>
    <pre class="sample" tabindex="0">READY http://127.0.0.1:…/#token=…</pre>
    <p>${t("refused.again")}</p>
    <${Command} command="lineup run" />
  </main>`;
