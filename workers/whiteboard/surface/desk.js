// The desk around the Whiteboard's paper: boards, tools, the ways to end a board. The last of its scripts; it follows state and look.

const heading = el("h1", { className: "hidden" });
const tabs = el("div", { className: "tabs", role: "tablist" });
const note = el("p", { className: "note", role: "status" });
const empty = el("p", { className: "empty" });
const group = (...children) => el("div", { className: "group", role: "group" }, ...children);
const button = (onclick, className = "") => el("button", { type: "button", className, onclick });

const toolButtons = ["pen", "eraser", "text"].map((name) => Object.assign(button(() => choose(() => (tool = name))), { value: name }));
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
widthButtons.forEach((one, n) => one.append(el("i")) ?? Object.assign(one.firstChild.style, dot(5 + 4 * n)));
asking.onkeydown = (event) => {
  if (event.key === "Escape") ask(false);
};

function dot(size) {
  return { width: `${size}px`, height: `${size}px` };
}

function tell(text) {
  note.textContent = text;
}

function choose(set) {
  written(true);
  set();
  press();
}

function press() {
  const chosen = [
    [toolButtons, tool],
    [colorButtons, color],
    [widthButtons, String(width)],
  ];
  for (const [buttons, value] of chosen) for (const one of buttons) one.ariaPressed = String(one.value === value);
}

function ask(isAsked) {
  asking.hidden = !isAsked;
  cancelButton.hidden = submitButton.hidden = isAsked;
  (isAsked ? noButton : cancelButton).focus();
}

/** Submit or give up the board that is shown; its end comes as a change of the state. */
async function finish(name) {
  if (!isOpen()) return;
  written(true);
  const boardId = shownId;
  isSending = true;
  if (!asking.hidden) ask(false);
  refresh();
  if (name === "submit") tell(word("submitting"));
  try {
    await surface.event(name, { board_id: boardId });
    await ended(boardId);
  } catch (refused) {
    isSending = false;
    refresh();
    tell(word("refused") + refused.code);
    return;
  }
  isSending = false;
  refresh();
}

let whenChanged = () => {};

/** Wait until a board is not open any more. */
async function ended(boardId) {
  while (state.boards?.[boardId]?.status === "open") await new Promise((resolve) => (whenChanged = resolve));
}

// --- what is shown

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
  const counted = [word("strokes")(strokes), ...(items.length > strokes ? [word("texts")(items.length - strokes)] : [])].join(", ");
  const status = board()?.status ?? "open";
  const facts = [board()?.title ?? "", ...(status === "open" ? [] : [word(status)]), counted];
  if (!isSending) tell(facts.filter(Boolean).join(" · "));
  document.title = heading.textContent = shownId === null ? word("title") : `${word("title")}: ${board().title ?? ""}`;
}

function tabOf([id, { title }], place) {
  const isShown = id === shownId;
  const tab = el("button", { type: "button", role: "tab", textContent: title ?? id, title: title ?? id, tabIndex: isShown ? 0 : -1 });
  tab.ariaSelected = String(isShown);
  tab.onclick = () => isShown || show(id);
  tab.onkeydown = ({ key }) => {
    const next = boards()[place + { ArrowRight: 1, ArrowLeft: -1 }[key]];
    if (next === undefined) return;
    show(next[0]);
    tabs.querySelector("[aria-selected=true]").focus();
  };
  return tab;
}

function relabel() {
  empty.textContent = word("empty");
  tabs.ariaLabel = word("boards");
  groups.forEach((one, n) => (one.ariaLabel = word(["tools", "colors", "widths"][n])));
  toolButtons.forEach((one) => (one.textContent = word(one.value)));
  colorButtons.forEach((one, n) => (one.ariaLabel = one.title = word("colorNames")[n]));
  widthButtons.forEach((one, n) => (one.ariaLabel = one.title = word("widthNames")[n]));
  undoButton.textContent = word("undo");
  submitButton.textContent = word("submit");
  cancelButton.textContent = word("cancel");
  question.textContent = word("ask");
  yesButton.textContent = word("yes");
  noButton.textContent = word("no");
  upper.ariaLabel = word("canvas");
  field.ariaLabel = word("write");
  help.textContent = word("help");
  press();
  refresh();
}

/** Follow one change of the board that is shown; returns whether that was all there is to do. */
function follow(patch) {
  const changed = patch?.boards?.[shownId];
  if (patch === null || changed === null || typeof patch.boards !== "object" || patch.boards === null) return false;
  for (const [kind, make] of [["strokes", strokeOf], ["texts", textOf]]) {
    const given = changed?.[kind] ?? {};
    if (typeof given !== "object") return false;
    for (const id of Object.keys(given)) {
      drop(`${kind}/${id}`);
      const item = make(id, board()[kind]?.[id]);
      if (item !== null) take(item);
    }
  }
  return true;
}

new ResizeObserver(fit).observe(desk);
surface.onLook(relabel);
surface.onState((now, { patch }) => {
  state = now;
  const all = boards();
  const open = all.filter(([, { status }]) => status === "open");
  const isThere = all.some(([id]) => id === shownId);
  const isStale = !isThere || (board().status !== "open" && open.length > 0 && patch?.boards?.[open.at(-1)[0]]?.status === "open");
  if (isStale) show((open.at(-1) ?? all.at(-1) ?? [null])[0]);
  else if (!follow(patch)) show(shownId);
  else refresh();
  whenChanged();
});
