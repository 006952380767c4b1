/**
 * The conversation, oldest first, in windows.
 * 1. At the end it follows what comes; scrolled up it stays where it is, and says that there is something newer.
 * 2. Near its beginning older messages are read and put before, and so they are when all fits; what was being read does not move.
 */
/** @import { MessageSummary, Mirror, PageState } from "../types.d.ts" */
import { day, t } from "../i18n/words.js";
import * as mirrors from "../mirror.js";
import { EMPTY_FORM } from "../store.js";
import { Component, html } from "../vendor/htm-preact.js";
import { Icon } from "./basics.js";
import { Empty } from "./help.js";
import { Message, Sent } from "./message.js";

const NEAR_END = 80; // pixels
const NEAR_START = 400;
const SAME_BREATH_MS = 5 * 60_000;

/** @param {MessageSummary | undefined} before @param {MessageSummary} message */
const isFirstOf = (before, message) =>
  before === undefined ||
  before.author !== message.author ||
  before.type !== message.type ||
  Date.parse(message.created_at) - Date.parse(before.created_at) > SAME_BREATH_MS;

export class Timeline extends Component {
  /** @param {any} props */
  constructor(props) {
    super(props);
    this.isAtEnd = true;
    this.state = { hasNewer: false };
  }

  get box() {
    return /** @type {HTMLElement} */ (/** @type {HTMLElement} */ (this.base).querySelector(".timeline"));
  }

  componentDidMount() {
    this.toEnd();
    this.watch = new ResizeObserver(() => {
      if (this.isAtEnd) this.toEnd();
    });
    this.watch.observe(this.box);
    this.watch.observe(/** @type {Element} */ (this.box.firstElementChild));
    this.fill();
  }

  componentWillUnmount() {
    this.watch?.disconnect();
  }

  toEnd() {
    this.box.scrollTop = this.box.scrollHeight;
  }

  /** Remember an entry that is seen, and where (rule 2). */
  getSnapshotBeforeUpdate() {
    if (this.isAtEnd) return null;
    const top = this.box.getBoundingClientRect().top;
    const entry = [...this.box.querySelectorAll(".entry")].find((one) => one.getBoundingClientRect().bottom > top);
    return entry ? { entry, offset: entry.getBoundingClientRect().top } : null;
  }

  /** @param {any} before @param {any} _state @param {{ entry: Element, offset: number } | null} seen */
  componentDidUpdate(before, _state, seen) {
    const now = /** @type {any} */ (this.props);
    if (this.isAtEnd && now.state.past === null) this.toEnd();
    else if (seen && seen.entry.isConnected) this.box.scrollTop += seen.entry.getBoundingClientRect().top - seen.offset;
    const isNewer = before.state.mirror !== now.state.mirror && newestOf(before.state.mirror) < newestOf(now.state.mirror);
    if (isNewer && !this.isAtEnd) this.setState({ hasNewer: true });
    if (now.state.outgoing.length > before.state.outgoing.length) this.leave();
    if (before.state.links !== now.state.links) this.fill();
  }

  /** Where nothing can be scrolled nobody can ask for older messages by scrolling (rule 2). */
  fill() {
    const box = this.box;
    if (box.clientHeight > 0 && box.scrollHeight <= box.clientHeight) void (/** @type {any} */ (this.props).page.readOlder());
  }

  scrolled() {
    const box = this.box;
    if (box.clientHeight === 0) return; // it is not shown
    const { page, state } = /** @type {any} */ (this.props);
    const wasAtEnd = this.isAtEnd;
    this.isAtEnd = state.past === null && box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END;
    if (this.isAtEnd !== wasAtEnd) this.setState(this.isAtEnd ? { hasNewer: false } : {}); // the way to the end is offered while away
    if (box.scrollTop < NEAR_START) void page.readOlder();
  }

  leave() {
    const { page } = /** @type {any} */ (this.props);
    this.isAtEnd = true;
    page.leavePast();
    this.setState({ hasNewer: false }, () => this.toEnd());
  }

  render() {
    const { state, mirror, page } = /** @type {{ state: PageState, mirror: Mirror, page: import("../page.js").Page }} */ (
      /** @type {unknown} */ (this.props)
    );
    const messages = state.past ?? mirrors.timeline(mirror);
    const isEmpty = messages.length === 0 && state.outgoing.length === 0;
    const { hasNewer } = /** @type {any} */ (this.state);
    const isAway = !this.isAtEnd || state.past !== null;
    return html`<div class="timeline-box">
      <div class="timeline" role="log" aria-label=${t("timeline.label")} tabindex="0" onScroll=${() => this.scrolled()}>
        <div class="timeline-inner">
          ${isEmpty
            ? html`<${Empty} hasAgent=${Boolean(mirror.agent.connected)} />`
            : html`<${Start} state=${state} page=${page} count=${messages.length} />`}
          ${entries(state, mirror, messages)}
          ${state.past === null ? state.outgoing.map((sent) => html`<${Sent} key=${`sent-${sent.key}`} sent=${sent} />`) : null}
        </div>
      </div>
      ${isAway
        ? html`<button type="button" class=${`to-newest ${hasNewer ? "to-newest-has" : ""}`} onClick=${() => this.leave()}>
            <${Icon} name="down" /> ${t("timeline.newest")}
          </button>`
        : null}
    </div>`;
  }
}

/** @param {Mirror | null} mirror */
const newestOf = (mirror) => Math.max(0, ...(mirror?.messages.keys() ?? []));

/** @param {PageState} state @param {Mirror} mirror @param {MessageSummary[]} messages */
function entries(state, mirror, messages) {
  const summaries = new Map((mirrors.chatState(mirror).summaries ?? []).map((row) => [row.number, row.text]));
  return messages.flatMap((message, index) => {
    const before = messages[index - 1];
    const isNewDay = before === undefined || new Date(before.created_at).toDateString() !== new Date(message.created_at).toDateString();
    const question = message.interaction_id ? mirror.interactions.get(message.interaction_id) : undefined;
    const entry = html`<${Message}
      key=${message.number}
      message=${message}
      mirror=${mirror}
      question=${question}
      form=${question ? (state.forms.get(question.interaction_id) ?? EMPTY_FORM) : undefined}
      answered=${state.answered}
      isFirst=${isNewDay || isFirstOf(before, message)}
      summary=${summaries.get(message.number)}
      lang=${state.lang}
      hasFront=${mirror.focus.length > 0}
    />`;
    return isNewDay ? [html`<p class="day" key=${`day-${message.number}`}>${day(message.created_at)}</p>`, entry] : [entry];
  });
}

/** What stands before the oldest that is shown. @param {{ state: PageState, page: import("../page.js").Page, count: number }} props */
function Start({ state, page, count }) {
  if (state.isLoadingOlder) return html`<p class="timeline-start">${t("timeline.reading")}</p>`;
  if (!state.hasOlder) return html`<p class="timeline-start">${t("timeline.start")}</p>`;
  return count === 0
    ? null
    : html`<p class="timeline-start">
        <button type="button" class="quiet" onClick=${() => void page.readOlder()}>${t("timeline.older")}</button>
      </p>`;
}
