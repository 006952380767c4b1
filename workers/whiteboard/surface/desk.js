// The desk around the Whiteboard's paper: boards, tools, the ways to end a board. The last of its scripts; it follows state and look.

const heading = el("h1", { className: "hidden" });
const tabs = el("div", { className: "tabs", role: "tablist" });
const note = el("p", { className: "note", role: "status" });
const empty = el("p", { className: "empty" });
const group = (/** @type {Node[]} */ ...children) => el("div", { className: "group", role: "group" }, ...children);
const button = (/** @type {() => void} */ onclick, className = "") => el("button", { type: "button", className, onclick });

/** @type {Tool[]} */
const TOOLS = ["pen", "eraser", "text"];
const toolButtons = TOOLS.map((name) => Object.assign(button(() => choose(() => (tool = name))), { value: name }));
const colorButtons = COLORS.map((value) => Object.assign(button(() => choose(() => (color = value)), "swatch"), { value }));
const widthButtons = PEN_WIDTHS.map((_, n) => Object.assign(button(() => choose(() => (width = n)), "width"), { value: String(n) }));
const undoButton = button(undo);
const submitButton = button(() => finish("submit"), "main");
const cancelButton = button(() => ask(true));
const question = el("p", { id: "question" });
const yesButton = button(() => finish("cancel"), "danger");
const noButton = button(() => ask(false));
const asking = el("div", { className: "asking", role: "alertdialog", "aria-labelledby": "question", hidden: true });
asking.append(question, yesButton, noButton);
const groups = [group(...toolButtons), group(...colorButtons), group(...widthButtons)];
const ending = el("div", { className: "group end" }, cancelButton, submitButton, asking);
const bar = el("div", { className: "bar" }, ...groups, undoButton, ending);
const table = el("main", {}, heading, tabs, bar, note, empty, desk, help);
document.body.append(table);
colorButtons.forEach((one) => (one.style.background = one.value));
widthButtons.forEach((one, n) => {
  const dot = el("i");
  dot.style.width = dot.style.height = `${5 + 4 * n}px`;
  one.append(dot);
});
asking.onkeydown = (/** @type {KeyboardEvent} */ event) => {
  if (event.key === "Escape") ask(false);
};

/** @param {string} text */
function tell(text) {
  note.textContent = text;
}

/** @param {() => void} set */
function choose(set) {
  written(true);
  set();
  press();
}

function press() {
  const chosen = [
    { buttons: toolButtons, value: tool },
    { buttons: colorButtons, value: color },
    { buttons: widthButtons, value: String(width) },
  ];
  for (const { buttons, value } of chosen) for (const one of buttons) one.ariaPressed = String(one.value === value);
}

/** @param {boolean} isAsked */
function ask(isAsked) {
  asking.hidden = !isAsked;
  cancelButton.hidden = submitButton.hidden = isAsked;
  (isAsked ? noButton : cancelButton).focus();
}

/** Submit or give up the board that is shown; its end comes as a change of the state. @param {"submit" | "cancel"} name */
async function finish(name) {
  const boardId = shownId;
  if (boardId === null || !isOpen()) return;
  written(true);
  isSending = true;
  if (!asking.hidden) ask(false);
  refresh();
  if (name === "submit") tell(words().submitting);
  try {
    await surface.event(name, { board_id: boardId });
    await ended(boardId);
  } catch (refused) {
    isSending = false;
    refresh();
    tell(words().refused + codeOf(refused));
    return;
  }
  isSending = false;
  refresh();
}

/** @type {(nothing: void) => void} */
let whenChanged = () => {};

/** Wait until a board is not open any more. @param {string} boardId */
async function ended(boardId) {
  while (boardIn(state, boardId)?.status === "open") await new Promise((resolve) => (whenChanged = resolve));
}

// --- what is shown

/** @param {string | null} boardId */
function show(boardId) {
  written(true);
  if (line !== null || erased !== null) end();
  shownId = boardId;
  if (!asking.hidden) ask(false);
  takeAll(board());
  refresh();
}

function refresh() {
  const all = boards();
  empty.hidden = all.length > 0;
  bar.hidden = note.hidden = desk.hidden = all.length === 0;
  tabs.hidden = all.length < 2;
  tabs.replaceChildren(...all.map(tabOf));
  const can = isOpen();
  for (const one of [...toolButtons, ...colorButtons, ...widthButtons, submitButton, cancelButton, yesButton]) one.disabled = !can;
  undoButton.disabled = !can || !undos.some((one) => one.board === shownId);
  const strokes = items.filter((item) => item.kind === "strokes").length;
  const { strokes: strokesIn, texts: textsIn, ended: endedAs, title } = words();
  const counted = [strokesIn(strokes), ...(items.length > strokes ? [textsIn(items.length - strokes)] : [])].join(", ");
  const status = board()?.status ?? "open";
  const named = typeof board()?.title === "string" ? String(board()?.title) : "";
  const facts = [named, ...(status === "open" ? [] : [endedAs[status]]), counted];
  if (!isSending) tell(facts.filter(Boolean).join(" · "));
  document.title = heading.textContent = shownId === null ? title : `${title}: ${named}`;
}

/** @param {ReturnType<typeof boards>[number]} one @param {number} place */
function tabOf({ id, title }, place) {
  const isShown = id === shownId;
  const tab = el("button", { type: "button", role: "tab", textContent: title, title, tabIndex: isShown ? 0 : -1 });
  tab.ariaSelected = String(isShown);
  tab.onclick = () => isShown || show(id);
  tab.onkeydown = ({ key }) => {
    const step = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
    const next = boards()[place + step];
    if (step === 0 || next === undefined) return;
    show(next.id);
    const selected = tabs.querySelector("[aria-selected=true]");
    if (selected instanceof HTMLElement) selected.focus();
  };
  return tab;
}

function relabel() {
  const said = words();
  empty.textContent = said.empty;
  tabs.ariaLabel = said.boards;
  groups.forEach((one, n) => (one.ariaLabel = [said.tools, said.colors, said.widths][n] ?? ""));
  toolButtons.forEach((one) => (one.textContent = said.toolNames[one.value]));
  colorButtons.forEach((one, n) => (one.ariaLabel = one.title = said.colorNames[n] ?? one.value));
  widthButtons.forEach((one, n) => (one.ariaLabel = one.title = said.widthNames[n] ?? one.value));
  undoButton.textContent = said.undo;
  submitButton.textContent = said.submit;
  cancelButton.textContent = said.cancel;
  question.textContent = said.ask;
  yesButton.textContent = said.yes;
  noButton.textContent = said.no;
  upper.ariaLabel = said.canvas;
  field.ariaLabel = said.write;
  help.textContent = said.help;
  press();
  refresh();
}

/** Follow one change of the board that is shown; returns whether that was all there is to do. @param {LineupState | null} patch */
function follow(patch) {
  if (patch === null || shownId === null || !isObject(patch.boards)) return false;
  const changed = patch.boards[shownId] ?? {};
  if (!isObject(changed) || patch.boards[shownId] === null) return false;
  for (const kind of /** @type {Kind[]} */ (["strokes", "texts"])) {
    const given = changed[kind] ?? {};
    if (!isObject(given)) return false;
    const now = membersOf(board(), kind);
    for (const id of Object.keys(given)) {
      drop(`${kind}/${id}`);
      const item = (kind === "strokes" ? strokeOf : textOf)(id, now[id]);
      if (item !== null) take(item);
    }
  }
  return true;
}

new ResizeObserver(() => {
  fit();
  drawCursor(); // and the line under the pen, if there is one
}).observe(desk);
surface.onLook(relabel);
surface.onLeave(() => {
  written(true);
  if (line !== null || erased !== null) end(); // as far as it was drawn
});
surface.onState((now, { patch }) => {
  state = now;
  const all = boards();
  const newest = all.findLast((one) => one.board.status === "open");
  const isThere = all.some(({ id }) => id === shownId);
  const hasOpened = newest !== undefined && boardIn(patch ?? {}, newest.id)?.status === "open";
  const isStale = !isThere || (board()?.status !== "open" && hasOpened);
  if (isStale) show((newest ?? all.at(-1))?.id ?? null);
  else if (!follow(patch)) show(shownId);
  else refresh();
  whenChanged();
});
