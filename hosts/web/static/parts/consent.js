/**
 * A question of an App for a capability, drawn by this page alone, above everything (SPEC 10, THREATS T-S5).
 * 1. The name and the id of the App are the kernel's; what the App wrote stands apart, marked as its words.
 * 2. The buttons do nothing for INERT_MS after the question was shown, moved, or the window came back: a press that was meant for something
 *    else allows nothing. Nothing has the keyboard at first, and only a press of the person counts.
 */
/** @import { Consent } from "../types.d.ts" */
import { sizeWords, t, tOr } from "../i18n/words.js";
import { usePage } from "../page.js";
import { html, useEffect, useRef, useState } from "../vendor/htm-preact.js";
import { visible } from "../visible.js";
import { Dialog, Quoted, Said } from "./basics.js";
import { Described, labelOf } from "./describe.js";

export const INERT_MS = 600;

/** True once the element has stood still, in a window that is looked at, for INERT_MS. @param {{ current: Element | null }} element */
function useArmed(element) {
  const [isArmed, setIsArmed] = useState(false);
  const since = useRef(performance.now());
  useEffect(() => {
    let frame = 0;
    let place = "";
    const rest = () => {
      since.current = performance.now();
    };
    const look = () => {
      const box = element.current?.closest("dialog")?.getBoundingClientRect();
      const now = box ? `${box.x},${box.y},${box.width},${box.height}` : "";
      if (now !== place) rest();
      place = now;
      setIsArmed(performance.now() - since.current >= INERT_MS);
      frame = requestAnimationFrame(look);
    };
    rest();
    look();
    window.addEventListener("focus", rest);
    document.addEventListener("visibilitychange", rest);
    return () => {
      cancelAnimationFrame(frame);
      window.removeEventListener("focus", rest);
      document.removeEventListener("visibilitychange", rest);
    };
  }, []);
  return { isArmed, may: () => performance.now() - since.current >= INERT_MS };
}

/** @param {{ consent: Consent, waiting: number }} props */
export function ConsentDialog({ consent, waiting }) {
  return html`<${Dialog} key=${consent.request_id} labelledby="consent-title" kind="dialog-consent"
    ><${Asked} consent=${consent} waiting=${waiting}
  /><//>`;
}

/** Who asks for what, by the kernel's word. @param {{ consent: Consent, waiting: number }} props */
const Asker = ({ consent, waiting }) =>
  html`<h2 id="consent-title">
      ${t("consent.title")}${waiting > 1 ? html` <span class="muted">${t("consent.more", { count: waiting })}</span>` : null}
    </h2>
    <p class="consent-app">
      <span class="muted">${t("consent.app")}</span> <strong><${Said} text=${consent.app_title} most=${80} /></strong>${" "}
      <code><${Said} text=${consent.app_scope} most=${100} /></code>
    </p>
    <p class="consent-wants">
      <span class="muted">${t("consent.wants")}</span> <strong>${tOr(`capability.${consent.capability}`, visible(consent.title))}</strong>
    </p>`;

/**
 * What it would be done with, as people read it: of a file its name, kind and size; its bytes were fixed when the App asked.
 * @param {Consent} consent
 */
function shownArguments(consent) {
  const { artifact_id: _id, sha256: _digest, size, ...rest } = consent.arguments ?? {};
  return { ...rest, ...(typeof size === "number" ? { size: sizeWords(size) } : {}) };
}

/** @param {{ what: { [name: string]: any } }} props */
function What({ what }) {
  const labels = Object.fromEntries(Object.keys(what).map((name) => [name, tOr(`consent.of.${name}`, labelOf(name))]));
  return html`<h3>${t("consent.what")}</h3>
    <div class="consent-what" tabindex="0" role="group" aria-label=${t("consent.what")}>
      <${Described} value=${what} labels=${labels} />
    </div>`;
}

/** @param {{ consent: Consent, waiting: number }} props */
function Asked({ consent, waiting }) {
  const page = usePage();
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const { isArmed, may } = useArmed(box);
  const [isSent, setIsSent] = useState(false);
  const what = shownArguments(consent);
  const answer = (/** @type {Event} */ event, /** @type {string} */ decision) => {
    if (!event.isTrusted || !may() || isSent) return;
    setIsSent(true);
    void page.act("consent.answer", { request_id: consent.request_id, decision, shown: consent.shown }).then((outcome) => {
      if (!outcome.ok) setIsSent(false);
    });
  };
  const button = (/** @type {string} */ decision) =>
    html`<button
      type="button"
      data-decision=${decision}
      aria-disabled=${isArmed && !isSent ? "false" : "true"}
      onClick=${(/** @type {Event} */ event) => answer(event, decision)}
    >
      ${t(`consent.${decision}`)}
    </button>`;
  return html`<div class="consent" ref=${box}>
    <${Asker} consent=${consent} waiting=${waiting} />
    ${Object.keys(what).length ? html`<${What} what=${what} />` : null}
    <h3>${t("consent.why")}</h3>
    <${Quoted} text=${consent.reason} />
    <div class="consent-buttons">
      <div>${["once", "while_open", "always"].filter((scope) => consent.scopes.includes(scope)).map((scope) => button(scope))}</div>
      <div>${button("deny")}${button("never")}</div>
    </div>
    <p class="hint" aria-live="off">${isArmed ? t("consent.drawn") : t("consent.wait")}</p>
  </div>`;
}
