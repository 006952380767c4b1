/**
 * Small pieces every part is made of.
 * 1. Words of others go through `visible` and stand in an element of their own direction (<bdi>): they cannot turn or hide ours.
 */
import { t, tOr } from "../i18n/words.js";
import { Component, html, useEffect, useRef, useState } from "../vendor/htm-preact.js";
import { oneLine, visible } from "../visible.js";

/** Untrusted text on one line. @param {{ text: unknown, most?: number }} props */
export const Said = ({ text, most }) => html`<bdi>${oneLine(text, most ?? 200)}</bdi>`;

/** Untrusted text with its lines, behind a bar. @param {{ text: unknown }} props */
export const Quoted = ({ text }) => html`<p class="quoted" dir="auto">${visible(String(text ?? ""))}</p>`;

const SHAPES = {
  activity: "M3 12h4l3-8 4 16 3-8h4",
  apps: "M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z",
  chat: "M4 5h16v11H9l-5 4z",
  close: "M6 6l12 12M18 6L6 18",
  down: "M12 5v14M6 13l6 6 6-6",
  help: "M9 9a3 3 0 1 1 4 2.8c-.8.4-1 1-1 2.2M12 17.5v.5",
  history: "M4 12a8 8 0 1 0 2.5-5.8L4 8.5M4 4v4.5h4.5M12 8v4l3 2",
  key: "M14 10a4 4 0 1 1-8 0 4 4 0 0 1 8 0zM13 13l7 7M17 17l2-2",
  menu: "M4 7h16M4 12h16M4 17h16",
  parked: "M6 4h12v16l-6-4-6 4z",
  send: "M5 12h13M12 5l7 7-7 7",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4v6M9 14v6",
};

/** @param {{ name: keyof typeof SHAPES }} props */
export const Icon = ({ name }) =>
  html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d=${SHAPES[name]} /></svg>`;

/** A sign of an App: its first letter on a colour of its own. @param {{ scope: string, title: string }} props */
export function AppSign({ scope, title }) {
  let sum = 0;
  for (const sign of scope) sum = (sum * 31 + (sign.codePointAt(0) ?? 0)) % 997;
  return html`<span class=${`sign sign-${sum % 6}`} aria-hidden="true">${[...oneLine(title, 4)][0] ?? "?"}</span>`;
}

/** A bar; without a percent only the words, where the name of a state is said as one. @param {{ percent?: number, label: string, message?: string }} props */
export function Progress({ percent, label, message }) {
  const bar = useRef(/** @type {HTMLElement | null} */ (null));
  const value = typeof percent === "number" ? Math.round(Math.min(Math.max(percent, 0), 100)) : undefined;
  useEffect(() => bar.current?.style.setProperty("--done", `${value ?? 0}%`), [value]);
  return html`<div class="progress-row">
    ${
      value === undefined
        ? null
        : html`<div class="progress" role="progressbar" aria-label=${label} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${value}>
              <div ref=${bar} class="progress-done"></div>
            </div>
            <span class="progress-number">${value} %</span>`
    }
    ${message ? html`<span class="muted"><${Said} text=${tOr(`state.${message}`, message)} most=${120} /></span>` : null}
  </div>`;
}

/** How long something still waits by the clock here; the kernel's own decides. @param {{ at: string }} props */
export function Expires({ at }) {
  const [now, setNow] = useState(Date.now());
  const left = Math.floor((Date.parse(at) - now) / 1000);
  useEffect(() => {
    const timer = setTimeout(() => setNow(Date.now()), left > 3660 ? 60_000 : 1000);
    return () => clearTimeout(timer);
  }, [now]);
  return html`<span class="expires" title=${at}>${left <= 0 ? t("card.expiring") : t("card.expires", { left: leftWords(left) })}</span>`;
}

/** @param {number} seconds */
function leftWords(seconds) {
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  const [d, h, m] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600), Math.floor(seconds / 60)];
  if (d) return t("left.days", { d, h: h % 24 });
  return h ? `${h}:${two(m % 60)}:${two(seconds % 60)}` : `${m}:${two(seconds % 60)}`;
}

/** When what had the keyboard goes away, what is around it gets the keyboard: nobody is thrown to the top of the page. */
export class KeepsFocus extends Component {
  getSnapshotBeforeUpdate() {
    return this.base instanceof HTMLElement && this.base.contains(document.activeElement);
  }

  /** @param {any} _props @param {any} _state @param {boolean} hadFocus */
  componentDidUpdate(_props, _state, hadFocus) {
    if (!hadFocus || !(this.base instanceof HTMLElement) || this.base.contains(document.activeElement)) return;
    if (document.activeElement === document.body || document.activeElement === null) this.base.focus({ preventScroll: true });
  }

  render() {
    const { as, children, ...rest } = /** @type {any} */ (this.props);
    return html`<${as ?? "div"} tabindex="-1" ...${rest}>${children}<//>`;
  }
}

/**
 * A dialog over the page. The browser keeps the keyboard inside and gives it back. Nothing in it has the keyboard at first but the
 * dialog itself: what was typed for something else answers nothing.
 */
export class Dialog extends Component {
  componentDidMount() {
    this.#show();
  }

  componentWillUnmount() {
    const dialog = this.base;
    if (dialog instanceof HTMLDialogElement) dialog.close();
  }

  #show() {
    const dialog = this.base;
    if (!(dialog instanceof HTMLDialogElement) || dialog.open) return;
    dialog.showModal();
    dialog.focus({ preventScroll: true });
  }

  /** Escape asks the owner; a dialog that must be answered stays. @param {Event} event */
  #cancel(event) {
    event.preventDefault();
    /** @type {any} */ (this.props).onCancel?.();
  }

  render() {
    const { labelledby, children, kind } = /** @type {any} */ (this.props);
    const reopen = () => {
      if (this.base?.isConnected) this.#show();
    };
    return html`<dialog
      class=${`dialog ${kind ?? ""}`}
      aria-labelledby=${labelledby}
      tabindex="-1"
      autofocus
      onCancel=${(/** @type {Event} */ event) => this.#cancel(event)}
      onClose=${reopen}
    >
      ${children}
    </dialog>`;
  }
}
