/** Every App that is there: open it, switch it or one of its tools on and off. */
/** @import { AppSummary, Mirror } from "../types.d.ts" */
import { appTitle, t, toolTitle, tOr } from "../i18n/words.js";
import * as mirrors from "../mirror.js";
import { usePage } from "../page.js";
import { html } from "../vendor/htm-preact.js";
import { oneLine, visible } from "../visible.js";
import { AppSign, Said } from "./basics.js";

/** @param {{ mirror: Mirror }} props */
export const Apps = ({ mirror }) =>
  html`<ul class="rows">
      ${mirror.apps.filter((app) => app.kind !== "runtime").map((app) => html`<${App} key=${app.app_scope} app=${app} mirror=${mirror} />`)}
    </ul>
    <p class="hint">${t("apps.off_hint")}</p>`;

/** @param {{ app: AppSummary, mirror: Mirror }} props */
function App({ app, mirror }) {
  const page = usePage();
  const isChat = app.app_scope === mirrors.CHAT;
  const live = mirrors.liveApps(mirror).find((one) => one.app_scope === app.app_scope);
  const open = () => void (live ? page.turnTo(live.instance_id) : page.act("app.open", { app_scope: app.app_scope }));
  return html`<li class="row app-row">
    <div class="row-head">
      <${AppSign} scope=${app.app_scope} title=${appTitle(app)} /><strong><${Said} text=${appTitle(app)} most=${60} /></strong
      ><code class="ident"><${Said} text=${app.app_scope} most=${60} /></code>
    </div>
    <p class="row-text">${visible(app.description)}</p>
    <p class="row-facts muted">
      ${tOr(`apps.kind.${app.kind}`, oneLine(app.kind, 20))} · ${t("apps.version", { version: oneLine(app.version, 20) })}
    </p>
    ${
      isChat
        ? html`<p class="muted">${t("apps.always")}</p>`
        : html`<div class="row-acts">
            <${Switch} name=${app.app_scope} label=${t("apps.on")} of=${appTitle(app)} isOn=${app.enabled} />
            <button type="button" disabled=${!app.enabled} onClick=${open}>
              ${t(live ? "apps.front" : "apps.open")}<span class="hidden"> ${oneLine(appTitle(app), 60)}</span>
            </button>
          </div>`
    }
    ${app.tools.length ? html`<${Tools} app=${app} />` : null}
  </li>`;
}

/** @param {{ app: AppSummary }} props */
const Tools = ({ app }) =>
  html`<details>
    <summary>${t("apps.tools", { count: app.tools.length })}</summary>
    <ul class="tools">
      ${app.tools.map(
        (tool) =>
          html`<li key=${tool.tool_id}>
            <span><${Said} text=${toolTitle(tool)} most=${60} /> <code class="ident"><${Said} text=${tool.tool_id} most=${80} /></code></span>
            <${Switch} name=${tool.tool_id} label="" of=${toolTitle(tool)} isOn=${tool.enabled} isOff=${!app.enabled} />
          </li>`,
      )}
    </ul>
  </details>`;

/** @param {{ name: string, label: string, of: string, isOn: boolean, isOff?: boolean }} props */
function Switch({ name, label, of, isOn, isOff }) {
  const page = usePage();
  const turn = () => void page.act(isOn ? "app.disable" : "app.enable", { name });
  return html`<button
    type="button"
    role="switch"
    class="switch"
    aria-checked=${isOn ? "true" : "false"}
    disabled=${isOff}
    aria-label=${`${t("apps.on")}: ${oneLine(of, 60)}`}
    onClick=${turn}
  >
    <span class="switch-track" aria-hidden="true"></span>${label}
  </button>`;
}
