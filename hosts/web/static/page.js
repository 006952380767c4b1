/**
 * What this page does: takes what the host says into the store, and asks the kernel what the person wants. It decides nothing.
 * 1. An act is an ask; what is shown comes back as a delta. What was refused is said where it was done, or as a toast.
 * 2. What is read by request (sessions, parked messages) is read again when it may have changed.
 */
/** @import { Change, Language, MessageSummary, Outcome, PageState, PanelName, Toast } from "./types.d.ts" */
import { Connection } from "./connection.js";
import { Forms } from "./forms.js";
import { setLanguage, t, wordsOfCode } from "./i18n/words.js";
import { ofBrowser, ofTab } from "./kept.js";
import * as mirrors from "./mirror.js";
import { provide, stopProviding } from "./providers.js";
import { Store, firstState } from "./store.js";
import { onSurfaceMessage } from "./surface_frames.js";
import { createContext, useContext } from "./vendor/htm-preact.js";
import { oneLine } from "./visible.js";

const TOAST_MS = 8000;
const MAX_TOASTS = 4;
const READ_AFTER_MS = 150;
const PAGE_OF_MESSAGES = 50;
const KEEP_LINE_AFTER_MS = 150;
const MAX_LINE = 65_536; // as the host takes
const MAX_ANSWERED = 200;
export const KEPT_TOKEN = "lineup.token"; // of this tab and this port
const KEPT_ANSWERED = "lineup.answered";

export class Page {
  /** @param {{ url: string, token: string, lang: Language, theme: PageState["theme"] }} begin */
  constructor(begin) {
    this.store = new Store({ ...firstState(), lang: begin.lang, theme: begin.theme, answered: answeredHere() });
    this.forms = new Forms(this);
    this.keys = 0;
    this.token = begin.token;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.reading = undefined;
    this.tab = ""; // its name, before the connection is opened
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.keepingLine = undefined;
    this.wasWelcome = false;
    setLanguage(begin.lang);
    this.connection = new Connection(begin.url, () => this.#greeting(), {
      message: (message) => this.#take(message),
      link: (link) => this.store.set(link === "open" ? { link } : { link, phase: "connecting" }),
      stuck: (isStuck) => this.store.set({ isStuck }),
    });
  }

  get state() {
    return this.store.state;
  }

  #greeting() {
    return { op: "auth", token: this.token, lang: this.store.state.lang, ...(this.tab ? { tab: this.tab } : {}) };
  }

  // --- what the host says

  /** @param {any} message */
  #take(message) {
    switch (message.op) {
      case "welcome":
        return this.#welcome(message);
      case "phase":
        return this.store.set({ phase: message.phase, code: message.code ?? "", hint: message.hint ?? "" });
      case "snapshot":
        return this.#snapshot(message);
      case "delta":
        return this.#delta(message.changes);
      case "surface.patched":
      case "surface.unmounted":
        return onSurfaceMessage(message);
      case "execute":
        return void provide(this, message);
      case "stop":
        return stopProviding(message.request_id);
      default:
        return undefined; // a newer host may say more
    }
  }

  /** @param {any} message */
  #welcome(message) {
    if (message.token) {
      this.token = String(message.token); // the browser was opened with one that opens only once
      ofTab.set(KEPT_TOKEN, this.token);
    }
    this.store.set({ isDemo: Boolean(message.demo), isExposed: Boolean(message.exposed) });
    if (this.wasWelcome || this.state.line !== "") this.keepLine();
    else this.store.set({ line: String(message.line ?? "") });
    this.wasWelcome = true;
  }

  /** @param {any} message */
  #snapshot(message) {
    const before = this.state.mirror;
    const mirror = mirrors.fromSnapshot(message.state, before);
    const isNew = before === null || before.kernel.epoch !== mirror.kernel.epoch;
    const hasOlder = isNew ? message.state.messages.length > 0 : this.state.hasOlder;
    this.store.set({
      mirror,
      viewId: String(message.view_id ?? ""),
      hasOlder,
      links: this.state.links + 1,
      phase: "up",
      ...(isNew ? { past: null, failedApp: "" } : {}),
    });
    this.forms.restore();
    this.forms.follow();
    void this.#readEnded();
    void this.readSessions();
    void this.readParked();
  }

  /** What ended while this page was away, or before it came. */
  async #readEnded() {
    const outcome = await this.ask("interactions.list", { state: "ended", limit: 50 });
    if (!outcome.ok || this.state.mirror === null) return;
    const known = this.state.mirror.interactions;
    const changes = outcome.value.interactions.filter((/** @type {any} */ one) => !known.has(one.interaction_id));
    if (changes.length) {
      this.store.set({
        mirror: mirrors.apply(
          this.state.mirror,
          changes.map((/** @type {any} */ value) => ({ kind: "interaction", value })),
        ),
      });
    }
  }

  /** @param {Change[]} changes */
  #delta(changes) {
    if (this.state.mirror === null) return;
    const before = this.state.mirror;
    const mirror = mirrors.apply(before, changes);
    const kinds = new Set(changes.map((change) => change.kind));
    const isTurned = kinds.has("focus") && mirror.focus.at(-1) !== before.focus.at(-1);
    this.store.set({ mirror, ...(isTurned ? { failedApp: "" } : {}) });
    this.#forgetSent(changes);
    this.#noteNotices(changes, before.interactions);
    if (kinds.has("interaction")) this.forms.follow();
    if (changes.some(({ kind, value }) => kind === "instance" && before.instances.get(value.instance_id)?.state !== value.state))
      this.#readSoon();
  }

  /** A line that is on its way here is drawn by the kernel's word as soon as that is here. @param {Change[]} changes */
  #forgetSent(changes) {
    const said = changes.filter(({ kind, value }) => kind === "message" && value.direction === "out").map(({ value }) => value);
    for (const message of said) {
      const sent = this.state.outgoing.find((one) => one.state === "sending" && one.text === message.text && message.number > one.after);
      if (sent) this.store.set({ outgoing: this.state.outgoing.filter((one) => one !== sent) });
    }
  }

  /** A notice that comes while the person looks at an App is told. @param {Change[]} changes @param {ReadonlyMap<string, any>} known */
  #noteNotices(changes, known) {
    if (this.state.mirror === null || mirrors.front(this.state.mirror) === null) return;
    for (const { kind, value } of changes) {
      if (kind !== "interaction" || value.kind !== "notice" || known.has(value.interaction_id)) continue;
      this.toast({ text: oneLine(`${value.request.title}: ${value.request.message}`), from: t("who.agent") });
    }
  }

  // --- asking

  /** @param {string} type @param {object} [fields] @returns {Promise<Outcome>} */
  ask(type, fields = {}) {
    return this.connection.request({ op: "ask", type, ...fields });
  }

  /** Ask, and say it when it was refused. @param {string} type @param {object} [fields] @returns {Promise<Outcome>} */
  async act(type, fields = {}) {
    const outcome = await this.ask(type, fields);
    if (!outcome.ok) this.toast({ tone: "bad", text: wordsOfCode(outcome.code) });
    return outcome;
  }

  /** Start the kernel, or open the link, again now. */
  retry() {
    if (this.state.isStuck && this.state.phase === "up") this.connection.openAnew();
    else if (this.state.link === "open") this.connection.tell({ op: "retry" });
    else this.connection.open();
  }

  /** What is half typed to the Agent. The host keeps it for this tab, in memory: through a reload, not longer. @param {string} line */
  write(line) {
    this.store.set({ line });
    clearTimeout(this.keepingLine);
    this.keepingLine = setTimeout(() => this.keepLine(), KEEP_LINE_AFTER_MS);
  }

  keepLine() {
    this.connection.tell({ op: "line", text: this.state.line.slice(0, MAX_LINE).toWellFormed() });
  }

  /** It was answered by this tab, as the view it is now: that number is another's in the next kernel. @param {string} id */
  noteAnswered(id) {
    const answered = new Map([...this.state.answered].slice(1 - MAX_ANSWERED)).set(id, this.state.viewId);
    this.store.set({ answered });
    ofTab.set(KEPT_ANSWERED, JSON.stringify([...answered]));
  }

  /** Say a text to the Agent. @param {string} written */
  async say(written) {
    const text = written.toWellFormed(); // half a character cannot travel; it is drawn as this sign here too
    const key = ++this.keys;
    const after = Math.max(0, ...(this.state.mirror?.messages.keys() ?? []));
    this.store.set({ past: null, outgoing: [...this.state.outgoing, { key, text, state: "sending", after }] });
    const outcome = await this.ask("message.send", { text });
    if (outcome.ok) this.unsay(key);
    else
      this.store.set({
        outgoing: this.state.outgoing.map((one) =>
          one.key === key ? { ...one, state: outcome.code === "lost" ? "lost" : "refused", code: outcome.code } : one,
        ),
      });
  }

  /** @param {number} key */
  unsay(key) {
    this.store.set({ outgoing: this.state.outgoing.filter((one) => one.key !== key) });
  }

  /** Bring to the front; a failed App has no front, this page alone turns to it. @param {string} instanceId @param {string} [failedApp] */
  async turnTo(instanceId, failedApp = "") {
    this.store.set({ failedApp });
    if (failedApp === "" && (this.state.mirror?.focus.at(-1) ?? mirrors.CHAT) !== instanceId)
      await this.act("focus.raise", { instance_id: instanceId });
  }

  // --- the timeline's windows

  /** Read the window before the oldest that is shown. */
  async readOlder() {
    const { mirror, past, isLoadingOlder, hasOlder } = this.state;
    if (mirror === null || isLoadingOlder || !hasOlder) return;
    const shown = past ?? mirrors.timeline(mirror);
    this.store.set({ isLoadingOlder: true });
    const outcome = await this.ask("messages.list", { limit: PAGE_OF_MESSAGES, ...(shown.length ? { before: shown[0].number } : {}) });
    this.store.set({ isLoadingOlder: false });
    if (outcome.ok) this.#putBefore(outcome.value.messages, outcome.value.more);
  }

  /**
   * While everything fits one window it is the mirror's; beyond that the page looks at a window of the past.
   * @param {MessageSummary[]} older
   * @param {boolean} hasOlder
   */
  #putBefore(older, hasOlder) {
    const { mirror, past } = this.state;
    if (mirror === null) return;
    const shown = past ?? mirrors.timeline(mirror);
    if (past === null && older.length + shown.length <= mirrors.MAX_MESSAGES) {
      this.store.set({
        hasOlder,
        mirror: mirrors.apply(
          mirror,
          older.map((value) => ({ kind: "message", value })),
        ),
      });
    } else {
      this.store.set({ hasOlder, past: [...older, ...shown].slice(0, mirrors.MAX_MESSAGES) });
    }
  }

  /** Back to the newest. */
  leavePast() {
    if (this.state.past !== null) this.store.set({ past: null, hasOlder: true });
  }

  // --- what is read by request

  /** Once for many changes. */
  #readSoon() {
    clearTimeout(this.reading);
    this.reading = setTimeout(() => {
      void this.readSessions();
      void this.readParked();
    }, READ_AFTER_MS);
  }

  async readSessions() {
    const outcome = await this.ask("sessions.list", { limit: 50 });
    if (outcome.ok) this.store.set({ sessions: outcome.value.sessions });
  }

  async readParked() {
    const outcome = await this.ask("inbox.parked", {});
    if (outcome.ok) this.store.set({ parked: outcome.value.rows });
  }

  /** Why something is as it is. @param {string} what */
  async explain(what) {
    const outcome = await this.act("explain", { what });
    if (outcome.ok) this.store.set({ why: outcome.value });
  }

  /** What an App wrote to its log. @param {string} instanceId @param {string} title */
  async readLog(instanceId, title) {
    const outcome = await this.act("logs.read", { instance_id: instanceId });
    if (outcome.ok) this.store.set({ log: { title, text: outcome.value.text } });
  }

  // --- this page's own

  /** @param {Partial<Toast> & { text: string }} toast @returns {number} */
  toast(toast) {
    const key = ++this.keys;
    this.store.set({ toasts: [...this.state.toasts, { ...toast, key, tone: toast.tone ?? "plain" }].slice(-MAX_TOASTS) });
    if (!toast.action) setTimeout(() => this.dropToast(key), TOAST_MS);
    return key;
  }

  /** @param {number} key */
  dropToast(key) {
    this.store.set({ toasts: this.state.toasts.filter((toast) => toast.key !== key) });
  }

  /** @param {PanelName} panel */
  show(panel) {
    this.store.set({ panel: this.state.panel === panel ? "" : panel });
  }

  /** Keep a question for later in this page, or open it here. @param {string} id @param {boolean} isLater */
  putOff(id, isLater) {
    const putOff = new Set(this.state.putOff);
    if (isLater) putOff.add(id);
    else putOff.delete(id);
    this.store.set({ putOff, wanted: isLater ? "" : id });
  }

  /** @param {Language} lang */
  speak(lang) {
    setLanguage(lang);
    ofBrowser.set("lineup.lang", lang);
    this.store.set({ lang });
  }

  /** @param {PageState["theme"]} theme */
  look(theme) {
    ofBrowser.set("lineup.theme", theme);
    this.store.set({ theme });
  }
}

/** What this tab answered: the view it was then, by question. @returns {Map<string, string>} */
function answeredHere() {
  try {
    return new Map(JSON.parse(ofTab.get(KEPT_ANSWERED) ?? "[]"));
  } catch {
    return new Map(); // somebody else's
  }
}

/** @type {import("./vendor/htm-preact.js").Context<Page>} */
export const PageContext = createContext(/** @type {any} */ (null));
export const usePage = () => useContext(PageContext);
