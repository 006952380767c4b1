/** What opens at the side: one of the places of the navigation. */
/** @import { PageState, PanelName } from "../types.d.ts" */
import { t } from "../i18n/words.js";
import { usePage } from "../page.js";
import { html, useEffect, useRef, useState } from "../vendor/htm-preact.js";
import { mayNotify } from "../providers.js";
import { Activity } from "./activity.js";
import { Apps } from "./apps.js";
import { Icon } from "./basics.js";
import { Help } from "./help.js";
import { History } from "./history.js";
import { ParkedMessages, Permissions } from "./permissions.js";

/** @type {Readonly<Record<Exclude<PanelName, "">, (state: PageState) => any>>} */
const INSIDES = {
  activity: (state) => state.mirror && html`<${Activity} mirror=${state.mirror} />`,
  apps: (state) => state.mirror && html`<${Apps} mirror=${state.mirror} />`,
  help: () => html`<${Help} />`,
  history: (state) => html`<${History} state=${state} />`,
  parked: (state) => html`<${ParkedMessages} state=${state} />`,
  permissions: (state) => html`<${Permissions} state=${state} />`,
  settings: (state) => html`<${Settings} state=${state} />`,
};

/** @param {{ state: PageState }} props */
export function Panel({ state }) {
  const page = usePage();
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const opener = /** @type {HTMLElement | null} */ (document.activeElement);
    box.current?.focus();
    return () => {
      if (document.activeElement === document.body || box.current?.contains(document.activeElement)) opener?.focus();
    };
  }, [state.panel]);
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") page.show("");
  };
  const name = /** @type {Exclude<PanelName, "">} */ (state.panel);
  return html`<aside class="panel" aria-labelledby="panel-title" onKeyDown=${key}>
    <div class="panel-head">
      <h2 id="panel-title" ref=${box} tabindex="-1">${t(`${name}.title`)}</h2>
      <button type="button" class="icon-button" aria-label=${t("app.close")} onClick=${() => page.show("")}>
        <${Icon} name="close" />
      </button>
    </div>
    <div class="panel-body" tabindex="0" role="group" aria-labelledby="panel-title">${INSIDES[name](state)}</div>
  </aside>`;
}

/** Notifications of Apps on the desktop too, while this page is not looked at: the browser asks the person, once. */
function Desktop() {
  const [may, setMay] = useState(mayNotify());
  if (may !== "default") return null;
  const ask = () => void Notification.requestPermission().then(setMay);
  return html`<p><button type="button" onClick=${ask}>${t("settings.desktop")}</button></p>`;
}

/** In which way person and Agent talk. The kernel says which there are; what it refuses is told, and nothing changes. */
const MODES = ["im", "audio", "video"];

/** @type {readonly PageState["theme"][]} */
const THEMES = ["auto", "light", "dark"];

/** @param {{ state: PageState }} props */
function Settings({ state }) {
  const page = usePage();
  const [asked, setAsked] = useState(0);
  const ask = async (/** @type {string} */ mode) => {
    await page.act("mode.request", { mode });
    setAsked(asked + 1); // the mark goes back to the mode there is
  };
  const radio = (
    /** @type {string} */ name,
    /** @type {string} */ value,
    /** @type {string} */ now,
    /** @type {string} */ label,
    /** @type {() => void} */ pick,
    /** @type {string | undefined} */ lang,
  ) =>
    html`<label class="choice-row"
      ><input type="radio" name=${name} checked=${now === value} onChange=${pick} /><span lang=${lang}>${label}</span></label
    >`;
  return html`<fieldset>
      <legend>${t("settings.language")}</legend>
      ${radio("lang", "en", state.lang, "English", () => page.speak("en"), "en")}
      ${radio("lang", "zh", state.lang, "简体中文", () => page.speak("zh"), "zh-CN")}
    </fieldset>
    <fieldset>
      <legend>${t("settings.theme")}</legend>
      ${THEMES.map((theme) => radio("theme", theme, state.theme, t(`settings.${theme}`), () => page.look(theme), undefined))}
    </fieldset>
    <fieldset>
      <legend>${t("mode.title")}</legend>
      <p class="hint">${t("mode.hint")}</p>
      ${MODES.map((mode) => radio("mode", mode, "im", t(`mode.${mode}`), () => void ask(mode), undefined))}
    </fieldset>
    <${Desktop} />`;
}
