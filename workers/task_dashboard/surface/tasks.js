// The Task Dashboard in its frame: what the App's process keeps, as a list. Nothing is changed here: the person's acts are events, and
// the list follows the state. An unfinished task is closed only after its own question is answered.
/// <reference path="../../../sdk/lineup_sdk/surface_js/lineup-surface.d.ts" />

/** @typedef {{ title: string, state: string, [name: string]: LineupJson }} Task */
/** @typedef {"pending" | "running" | "blocked" | "completed" | "cancelled" | "failed"} TaskState */
/**
 * @typedef {{
 *   title: string, list: string, empty: string, counts: (open: number, ended: number) => string, states: Record<TaskState, string>,
 *   close: (title: string) => string, ask: string, yes: string, no: string, progress: (title: string) => string, refused: string,
 * }} Words
 */

/** @type {Record<LineupLook["lang"], Words>} */
const WORDS = {
  en: {
    title: "Task Dashboard",
    list: "Tasks",
    empty: "No tasks yet. The Agent puts what it works on here.",
    counts: (open, ended) => `${open} open, ${ended} ended`,
    states: { pending: "Waiting", running: "Running", blocked: "Blocked", completed: "Done", cancelled: "Cancelled", failed: "Failed" },
    close: (title) => `Close ${title}`,
    ask: "This task is not finished. Close it all the same?",
    yes: "Close the task",
    no: "Keep it",
    progress: (title) => `Progress of ${title}`,
    refused: "That did not work. Try again.",
  },
  zh: {
    title: "任务面板",
    list: "任务",
    empty: "还没有任务。Agent 会把正在做的事放在这里。",
    counts: (open, ended) => `${open} 项进行中，${ended} 项已结束`,
    states: { pending: "等待中", running: "进行中", blocked: "受阻", completed: "已完成", cancelled: "已取消", failed: "失败" },
    close: (title) => `关闭「${title}」`,
    ask: "这项任务还没有完成，仍要关闭吗？",
    yes: "关闭任务",
    no: "保留",
    progress: (title) => `「${title}」的进度`,
    refused: "没有成功，请再试一次。",
  },
};
const ENDED = new Set(["completed", "cancelled", "failed"]);

const { surface } = lineup;
const words = () => surface.inLanguage(WORDS);

/**
 * An element with properties, attributes (aria-*, role) and children.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag @param {{ [name: string]: unknown }} [given] @param {Node[]} children
 */
function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name in made) Object.assign(made, { [name]: value });
    else made.setAttribute(name, String(value));
  }
  made.append(...children);
  return made;
}

const heading = el("h1", { className: "hidden" });
const counts = el("p", { className: "counts" });
const said = el("p", { className: "hidden", role: "status" });
const empty = el("p", { className: "empty" });
const list = el("ul", { className: "tasks" });
document.body.append(el("main", {}, heading, counts, said, list, empty));

/** @type {Map<string, Row>} */
const rows = new Map();

/** One task in the list; it stays the same element as long as the task is there, so that focus stays. */
class Row {
  /** @param {string} taskId @param {Task} task */
  constructor(taskId, task) {
    this.task = task;
    this.taskId = taskId;
    this.title = el("h2");
    this.state = el("span", { className: "state" });
    this.close = el("button", { type: "button", className: "close", textContent: "×", onclick: () => this.wantClose() });
    this.description = el("p", { className: "description" });
    this.bar = el("progress", { max: 100 });
    this.percent = el("span", { className: "percent" });
    this.question = el("p", { id: `ask-${rows.size}-${Math.random().toString(36).slice(2)}` });
    this.yes = el("button", { type: "button", className: "danger", onclick: () => this.act("cancel") });
    this.no = el("button", { type: "button", onclick: () => this.ask(false) });
    this.asking = el("div", { className: "asking", role: "alertdialog", "aria-labelledby": this.question.id, hidden: true });
    this.asking.append(this.question, this.yes, this.no);
    this.asking.onkeydown = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") this.ask(false);
    };
    this.measure = el("div", { className: "measure" }, this.bar, this.percent);
    const head = el("div", { className: "head" }, this.title, this.state, this.close);
    this.root = el("li", {}, head, this.description, this.measure, this.asking);
  }

  /** @param {Task} task */
  show(task) {
    const isNew = this.task.state !== task.state;
    const told = typeof task.progress === "number" ? task.progress : null;
    this.task = task;
    const { states, close, ask, yes, no, progress } = words();
    this.root.dataset.state = task.state;
    this.title.textContent = task.title;
    this.state.textContent = new Map(Object.entries(states)).get(task.state) ?? task.state;
    this.description.textContent = typeof task.description === "string" ? task.description : "";
    this.description.hidden = !this.description.textContent;
    this.measure.hidden = told === null;
    this.bar.value = told ?? 0;
    this.bar.setAttribute("aria-label", progress(task.title));
    this.percent.textContent = `${Math.round(told ?? 0)} %`;
    this.close.setAttribute("aria-label", close(task.title));
    this.close.title = close(task.title);
    this.question.textContent = ask;
    this.yes.textContent = yes;
    this.no.textContent = no;
    if (this.isEnded && !this.asking.hidden) this.ask(false);
    if (isNew) said.textContent = `${task.title}: ${this.state.textContent}`;
  }

  get isEnded() {
    return ENDED.has(this.task.state);
  }

  wantClose() {
    if (this.isEnded) this.act("remove");
    else this.ask(true);
  }

  /** @param {boolean} isAsked */
  ask(isAsked) {
    this.asking.hidden = !isAsked;
    (isAsked ? this.no : this.close).focus();
  }

  /** @param {"cancel" | "remove"} name */
  async act(name) {
    this.yes.disabled = this.close.disabled = true;
    try {
      await surface.event(name, { task_id: this.taskId });
    } catch {
      said.textContent = words().refused;
    }
    this.yes.disabled = this.close.disabled = false;
  }
}

/** @param {LineupJson} one @returns {one is Task} */
function isTask(one) {
  return typeof one === "object" && one !== null && !Array.isArray(one) && typeof one.title === "string" && typeof one.state === "string";
}

/** What of a state can be shown: the open ones before the ended, each in its order. @param {LineupState} state */
function tasksOf(state) {
  const given = Object.entries(state.tasks ?? {});
  const tasks = given.flatMap(([id, one]) => (isTask(one) ? [{ id, task: one, isOpen: !ENDED.has(one.state) }] : []));
  const orderOf = (/** @type {Task} */ task) => (typeof task.order === "number" ? task.order : 0);
  return tasks.sort((a, b) => Number(b.isOpen) - Number(a.isOpen) || orderOf(a.task) - orderOf(b.task));
}

/** @param {LineupState} state */
function draw(state) {
  const tasks = tasksOf(state);
  const known = new Set(tasks.map(({ id }) => id));
  for (const [id, row] of rows) {
    if (known.has(id)) continue;
    if (row.root.contains(document.activeElement)) list.querySelector("button")?.focus();
    row.root.remove();
    rows.delete(id);
  }
  tasks.forEach(({ id, task }, place) => {
    const row = rows.get(id) ?? new Row(id, task);
    rows.set(id, row);
    row.show(task);
    if (list.children[place] !== row.root) list.insertBefore(row.root, list.children[place] ?? null);
  });
  const open = tasks.filter(({ isOpen }) => isOpen).length;
  counts.textContent = words().counts(open, tasks.length - open);
  counts.hidden = tasks.length === 0;
  list.hidden = tasks.length === 0;
  empty.hidden = tasks.length > 0;
}

/** @type {LineupState} */
let shown = {};
surface.onLook(() => {
  const { title, list: named, empty: nothing } = words();
  document.title = title;
  heading.textContent = title;
  list.setAttribute("aria-label", named);
  empty.textContent = nothing;
  draw(shown);
});
surface.onState((state) => {
  shown = state;
  draw(state);
});
