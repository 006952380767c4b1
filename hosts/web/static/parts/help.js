/** How to connect an Agent, and what stands where nothing was said yet. */
import { t } from "../i18n/words.js";
import { usePage } from "../page.js";
import { html, useState } from "../vendor/htm-preact.js";

const SAMPLE = `{"door":"open","conversation_id":"…","revision":"….1",…}
{"type":"lineup.v1.client.inventory","payload":{"tools":[…],…},…}`;

/** A command to copy. @param {{ command: string }} props */
export function Command({ command }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = () =>
    void navigator.clipboard.writeText(command).then(
      () => setIsCopied(true),
      () => setIsCopied(false),
    );
  return html`<div class="command">
    <code>${command}</code
    ><button type="button" class="quiet" aria-label=${`${t("help.copy")}: ${command}`} onClick=${copy}>
      ${t(isCopied ? "help.copied" : "help.copy")}
    </button>
  </div>`;
}

export const Help = () =>
  html` <p>${t("help.agent")}</p>
    <${Command} command="lineup agent" />
    <p>${t("help.lines")}</p>
    <pre class="sample" tabindex="0">${SAMPLE}</pre>
    <p class="muted">${t("help.words")}</p>
    <p>${t("help.demo")}</p>
    <${Command} command="lineup run --demo" />`;

/** @param {{ hasAgent: boolean }} props */
export function Empty({ hasAgent }) {
  const page = usePage();
  if (hasAgent)
    return html`<section class="empty">
      <h2>${t("empty.title")}</h2>
      <p>${t("empty.agent")}</p>
    </section>`;
  return html`<section class="empty">
    <h2>${t("empty.title")}</h2>
    <p>${t("empty.text")}</p>
    <div class="empty-ways">
      <div>
        <h3>${t("help.title")}</h3>
        <${Command} command="lineup agent" /><button type="button" class="link" onClick=${() => page.show("help")}>
          ${t("agent.how")}
        </button>
      </div>
      <div>
        <h3>${t("app.demo")}</h3>
        <${Command} command="lineup run --demo" />
      </div>
    </div>
  </section>`;
}
