/** Where the person writes to the Agent. What is typed stays through reconnects and reloads of this tab until it is sent; no disk has it. */
/** @import { Mirror } from "../types.d.ts" */
import { t } from "../i18n/words.js";
import { usePage } from "../page.js";
import { html, useEffect, useLayoutEffect, useRef } from "../vendor/htm-preact.js";
import { codePoints } from "../visible.js";
import { Icon } from "./basics.js";

const MAX_POINTS = 16_384;
const TOLD_FROM = 15_000;

/** @param {{ mirror: Mirror | null, text: string }} props */
export function Composer({ mirror, text }) {
  const page = usePage();
  const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const setText = (/** @type {string} */ line) => page.write(line);
  useLayoutEffect(() => fit(box.current), [text]);
  useEffect(() => {
    const edit = (/** @type {any} */ event) => {
      setText(event.detail); // something that was sent is to be edited
      box.current?.focus();
    };
    window.addEventListener("lineup-edit", edit);
    return () => window.removeEventListener("lineup-edit", edit);
  }, []);
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!text.trim()) return;
    void page.say(text);
    setText("");
    box.current?.focus();
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
  };
  const count = text.length > TOLD_FROM / 2 ? codePoints(text) : 0;
  return html`<div class="composer-box">
    ${mirror !== null && !mirror.agent.connected ? html`<${NoAgent} />` : null}
    <form class="composer" onSubmit=${send}>
      <textarea
        ref=${box}
        rows="1"
        autocomplete="off"
        aria-label=${t("composer.label")}
        aria-describedby="composer-hint"
        placeholder=${t("composer.placeholder")}
        value=${text}
        onInput=${(/** @type {any} */ event) => setText(event.currentTarget.value)}
        onKeyDown=${key}
      ></textarea>
      <button class="primary composer-send" aria-label=${t("composer.send")} disabled=${!text.trim()}>
        <${Icon} name="send" /><span class="composer-word">${t("composer.send")}</span>
      </button>
    </form>
    <p class="hint composer-hint" id="composer-hint">
      ${count > TOLD_FROM
        ? html`<span class=${count > MAX_POINTS ? "error" : ""}>${t("composer.long", { count, max: MAX_POINTS })}</span>`
        : t("composer.hint")}
    </p>
  </div>`;
}

function NoAgent() {
  const page = usePage();
  const help = () => page.show("help");
  return html`<p class="no-agent">${t("agent.none")} <button type="button" class="link" onClick=${help}>${t("agent.how")}</button></p>`;
}

/** As high as its text, up to what the style sheet allows. @param {HTMLTextAreaElement | null} box */
function fit(box) {
  if (box === null) return;
  box.style.setProperty("height", "auto");
  if (box.scrollHeight > 0) box.style.setProperty("height", `${box.scrollHeight + 2}px`); // 0 while it is not shown
}
