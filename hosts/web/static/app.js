/** Where the page begins: its key, its language, its look, and the first drawing. */
/** @import { Language, PageState } from "./types.d.ts" */
import { languageOf } from "./i18n/words.js";
import { nameOfTab, ofBrowser, ofTab } from "./kept.js";
import { KEPT_TOKEN, Page, PageContext } from "./page.js";
import { Shell } from "./parts/shell.js";
import { useStore } from "./store.js";
import { html, render, useEffect, useState } from "./vendor/htm-preact.js";

const DARK = matchMedia("(prefers-color-scheme: dark)");

/** The key of this page: from the address, which forgets it at once, or from this tab, for a reload. */
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    ofTab.set(KEPT_TOKEN, given);
    history.replaceState(null, "", location.pathname);
  }
  return given ?? ofTab.get(KEPT_TOKEN) ?? "";
}

/** @returns {Language} */
function firstLanguage() {
  const kept = ofBrowser.get("lineup.lang");
  return kept === "en" || kept === "zh" ? kept : languageOf(navigator.languages);
}

/** @returns {PageState["theme"]} */
function firstTheme() {
  const kept = ofBrowser.get("lineup.theme");
  return kept === "light" || kept === "dark" ? kept : "auto";
}

/** @param {{ page: Page }} props */
function App({ page }) {
  const state = useStore(page.store);
  const [isDark, setIsDark] = useState(DARK.matches);
  useEffect(() => {
    const turn = () => setIsDark(DARK.matches);
    DARK.addEventListener("change", turn);
    return () => DARK.removeEventListener("change", turn);
  }, []);
  const theme = state.theme === "auto" ? (isDark ? "dark" : "light") : state.theme;
  useEffect(() => {
    document.documentElement.lang = state.lang === "zh" ? "zh-CN" : "en";
    document.documentElement.dataset.theme = theme;
  }, [state.lang, theme]);
  return html`<${PageContext.Provider} value=${page}><${Shell} state=${state} theme=${theme} /><//>`;
}

const page = new Page({ url: `ws://${location.host}/ws`, token: takeToken(), lang: firstLanguage(), theme: firstTheme() });
render(html`<${App} page=${page} />`, /** @type {Element} */ (document.getElementById("root")));
void nameOfTab().then((name) => {
  page.tab = name;
  page.connection.open();
});
addEventListener("online", () => page.connection.open());
addEventListener("pagehide", () => page.keepLine());
// The line of the terminal pasted into a tab that is here already changes the fragment alone: no browser loads the page again for that.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) location.reload();
});
