/**
 * Shows an isolated surface in its frame, and says so when it cannot.
 *
 * Use: `<${SurfaceFrame} key=${surface.surface_id} surface=${surface} send=${send} look=${look} link=${link} />`; it fills its box.
 * 1. The frame has exactly sandbox="allow-scripts" and a path that works once; nothing of a message ever becomes code, style or address.
 * 2. Over a lost link to the kernel the frame stays; with the next link it is mounted anew, with what was drawn meanwhile. One that the
 *    frame ended (navigated, silent, misbehaved) comes back by itself once a minute; else the person is told and can retry.
 * 3. A surface that another view took over is not taken back without being asked for.
 * 4. What cannot be shown as a frame is shown as the kernel's text of it.
 * 5. How often something was dropped stands in the attribute data-dropped of the box, outside of what a frame can read.
 */
/** @import { SurfaceSummary, Outcome } from "./types.d.ts" */
/** @import { Act, End, Look } from "./bridge.js" */
import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { Bridge, droppedText, expectMount, onSurfaceMessage, watchDropped } from "./bridge.js";
import { appTitle, t } from "./i18n/words.js";

export { onSurfaceMessage };

const AGAIN_MS = 60_000;
const ASK_AGAIN_MS = 500;

/**
 * @typedef {{ kind: "loading" } | { kind: "shown" } | { kind: "ended", why: End }
 *   | { kind: "refused", code: string, hint: string }} Showing
 */
/** @typedef {(message: { op: string, [name: string]: any }) => Promise<Outcome>} Send */
/** @typedef {{ surface: SurfaceSummary, send: Send, look: Look, link?: number }} Props */

/** @param {Props} props */
export function SurfaceFrame({ surface, send, look, link = 0 }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const slot = useRef(/** @type {Slot | null} */ (null));
  const [showing, setShowing] = useState(/** @type {Showing} */ ({ kind: "loading" }));

  useEffect(() => {
    const made = new Slot(/** @type {HTMLElement} */ (box.current), surface, send, look, setShowing);
    slot.current = made;
    made.mount();
    return () => made.leave();
  }, [surface.surface_id]);
  useEffect(() => slot.current?.look(look), [look.theme, look.lang]);
  useEffect(() => slot.current?.linked(link), [link]);
  useEffect(() => {
    const tell = () => box.current?.setAttribute("data-dropped", droppedText());
    tell();
    return watchDropped(tell);
  }, []);

  return html`<div class="surface" data-showing=${showing.kind}>
    <div class="surface-box" ref=${box} hidden=${showing.kind !== "shown"}></div>
    ${showing.kind === "loading" && html`<p class="surface-note" role="status">${t("surface.loading", { title: appTitle(surface) })}</p>`}
    ${(showing.kind === "ended" || showing.kind === "refused") &&
    html`<${Trouble} showing=${showing} surface=${surface} retry=${() => slot.current?.mount()} />`}
  </div>`;
}

/** @param {{ showing: Showing, surface: SurfaceSummary, retry: () => void }} props */
function Trouble({ showing, surface, retry }) {
  const why = showing.kind === "ended" ? showing.why : "refused";
  return html`<section class="surface-note" role="status">
    <p>${t(`surface.${why}`, { title: appTitle(surface) })}</p>
    ${showing.kind === "refused" && html`<p class="quiet">${showing.code}${showing.hint && ` · ${showing.hint}`}</p>`}
    ${why !== "closed" &&
    html`<button type="button" onClick=${retry}>${t(why === "taken_over" ? "surface.here" : "surface.retry")}</button>`}
    ${surface.text && html`<pre tabindex="0" aria-label=${t("surface.astext", { title: appTitle(surface) })}>${surface.text}</pre>`}
  </section>`;
}

/** One place for a surface in the page: mounts it, and mounts it again when the rules say so. */
class Slot {
  /** @type {Bridge | null} */
  #bridge = null;
  /** @type {Act[]} */
  #carried = [];
  #isAsking = false;
  #isLeft = false;
  #againAt = -AGAIN_MS;
  /** @type {number | null} */
  #link = null;

  /**
   * @param {HTMLElement} box @param {SurfaceSummary} surface @param {Send} send @param {Look} look
   * @param {(showing: Showing) => void} show
   */
  constructor(box, surface, send, look, show) {
    this.box = box;
    this.surface = surface;
    this.send = send;
    this.shownLook = look;
    this.show = show;
  }

  async mount() {
    if (this.#isAsking || this.#isLeft || this.#bridge !== null) return;
    this.#isAsking = true;
    this.show({ kind: "loading" });
    const outcome = await expectMount(() => this.send({ op: "surface.mount", surface_id: this.surface.surface_id }));
    this.#isAsking = false;
    if (this.#isLeft) {
      if (outcome.ok) this.send({ op: "surface.unmount", mount: outcome.value.mount });
    } else if (outcome.ok) this.#frame(outcome.value);
    else if (outcome.code === "lost") setTimeout(() => this.mount(), ASK_AGAIN_MS);
    else this.show({ kind: "refused", code: outcome.code, hint: outcome.detail?.hint ?? "" });
  }

  /** @param {Look} look */
  look(look) {
    this.shownLook = look;
    if (this.#bridge === null) return;
    this.#bridge.frame.title = appTitle(this.surface);
    this.#bridge.look(look);
  }

  /** There is a link to the kernel, the same or a new one. @param {number} link */
  linked(link) {
    const isNew = this.#link !== null && this.#link !== link;
    this.#link = link;
    if (isNew) void this.#bridge?.leave();
  }

  leave() {
    this.#isLeft = true;
    this.#bridge?.end("left");
  }

  /** @param {{ mount: string, path: string, version: number, state: any }} mounted */
  #frame(mounted) {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts");
    frame.setAttribute("allow", "");
    frame.setAttribute("referrerpolicy", "no-referrer");
    frame.title = appTitle(this.surface);
    const carried = this.#carried.splice(0);
    const told = { send: this.send, ended: (/** @type {End} */ why, /** @type {Act[]} */ left) => this.#ended(why, left, mounted.mount) };
    this.#bridge = new Bridge(frame, { ...mounted, carried }, this.shownLook, told);
    frame.src = mounted.path;
    this.box.replaceChildren(frame);
    this.show({ kind: "shown" });
  }

  /** @param {End} why @param {Act[]} left @param {string} mount */
  #ended(why, left, mount) {
    this.#bridge = null;
    this.#carried = why === "closed" ? [] : left.filter((act) => act.kind === "patch" || why === "link");
    if (why !== "link" && why !== "taken_over" && why !== "closed") this.send({ op: "surface.unmount", mount });
    if (why === "left") return;
    const isFree = why === "link" || (why !== "taken_over" && why !== "closed" && performance.now() - this.#againAt >= AGAIN_MS);
    if (why !== "link" && isFree) this.#againAt = performance.now();
    if (isFree) this.mount();
    else this.show({ kind: "ended", why });
  }
}
