// What is done on the Whiteboard. The state is the App's (workers/whiteboard/app.py says its form); what is drawn here becomes one patch
// an act, and shows at once because the bridge shows own patches at once.
// 1. Undo takes back what this frame did, newest first, by the opposite patch. What others changed since stays.
// 2. A board that ended is shown and not changed.
// 3. Whatever a pointer can do, keys can: the drawing area has a cursor of its own.

const COLORS = ["#2563eb", "#dc2626", "#16a34a", "#c2570c", "#7c3aed", "#111827"];
const PEN_WIDTHS = [2, 4, 8, 16]; // thousandths of the board's width, as text sizes are
const TEXT_SIZES = [14, 20, 32, 56];
const MAX_RAW_POINTS = 1000; // a longer stroke goes on as another one
const MAX_UNDO = 500;
const MAX_PART = 30_000; // characters of one patch; the kernel takes 48 KiB

// --- the boards, and what is done on one

let state = {};
let shownId = null;
let tool = "pen";
let color = COLORS[0];
let width = 1; // which of the widths
let line = null; // raw points of the stroke under the pen
let erased = null; // items the eraser took in this move
let wiped = null; // where it was last
let cursor = null; // of the keyboard, while it is used
let isSending = false;
let lastNumber = 0;
const undos = []; // {board, kind, items: {id: given | null}}

const isBoard = (board) => typeof board === "object" && board !== null && ["open", "submitted", "cancelled"].includes(board.status);
const boards = () => Object.entries(state.boards ?? {}).filter(([, board]) => isBoard(board));
const board = () => (shownId === null ? undefined : state.boards[shownId]);
const isOpen = () => board()?.status === "open" && !isSending;
const part = (value, whole) => Math.round(Math.min(Math.max(value / whole, 0), 1) * 1e4) / 1e4;
const newId = (kind) => `${kind}${Date.now().toString(36)}-${(lastNumber += 1).toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
const nextOrder = () => (items.at(-1)?.order ?? 0) + 1;

async function change(boardId, kind, given) {
  for (const some of inParts(given)) {
    try {
      await surface.patch({ boards: { [boardId]: { [kind]: some } } });
    } catch (refused) {
      tell(word("refused") + refused.code);
    }
  }
}

/** So many members at a time as one patch holds. */
function inParts(given) {
  const found = [{}];
  let size = 0;
  for (const [id, one] of Object.entries(given)) {
    const weight = JSON.stringify(one).length + id.length + 8;
    if (size > 0 && size + weight > MAX_PART) found.push({}), (size = 0);
    found.at(-1)[id] = one;
    size += weight;
  }
  return found;
}

function act(kind, given) {
  const before = board()[kind] ?? {};
  undos.push({ board: shownId, kind, given: Object.fromEntries(Object.keys(given).map((id) => [id, before[id] ?? null])) });
  if (undos.length > MAX_UNDO) undos.shift();
  change(shownId, kind, given);
}

function undo() {
  const at = undos.findLastIndex((one) => one.board === shownId);
  if (at < 0 || !isOpen()) return;
  const [{ board: boardId, kind, given }] = undos.splice(at, 1);
  change(boardId, kind, given);
}

// --- the tools: begin, go on, end, in the board's own measure

function begin(x, y) {
  if (tool === "text") return write(x, y);
  if (tool === "eraser") erased = { strokes: {}, texts: {} };
  else line = [x, y];
  return goOn(x, y);
}

function goOn(x, y) {
  if (erased !== null) {
    const [fromX, fromY] = wiped ?? [x, y];
    const steps = Math.ceil(Math.hypot(x - fromX, y - fromY) / ERASER) || 1;
    for (let n = 1; n <= steps; n += 1) wipe(fromX + ((x - fromX) * n) / steps, fromY + ((y - fromY) * n) / steps);
    wiped = [x, y];
  } else if (line !== null) {
    const from = line.slice(-2);
    line.push(x, y);
    Object.assign(wet, { strokeStyle: color, lineWidth: PEN_WIDTHS[width] * UNIT });
    wet.beginPath();
    wet.moveTo(from[0], from[1]);
    wet.lineTo(x, y);
    wet.stroke();
    if (line.length >= 2 * MAX_RAW_POINTS) {
      end();
      line = [x, y];
    }
  }
}

function wipe(x, y) {
  for (const item of items.filter((one) => isHit(one, x, y))) {
    erased[item.kind][item.id] = null;
    drop(item.key);
  }
}

function end() {
  if (erased !== null) {
    const taken = erased;
    erased = wiped = null;
    for (const [kind, given] of Object.entries(taken)) if (Object.keys(given).length > 0) act(kind, given);
  } else if (line !== null) {
    const points = simplified(line, 0.5).map((value, n) => part(value, n % 2 ? HEIGHT : WIDTH));
    const isDot = points.length === 4 && points[0] === points[2] && points[1] === points[3];
    line = null;
    wet.clearRect(0, 0, WIDTH, HEIGHT);
    act("strokes", { [newId("s")]: { color, width: PEN_WIDTHS[width], points: isDot ? points.slice(0, 2) : points, order: nextOrder() } });
  }
  drawCursor();
}

function write(x, y) {
  const size = TEXT_SIZES[width] * UNIT;
  const place = { left: `${x * scale}px`, top: `${(y - size * 1.1) * scale}px`, fontSize: `${size * scale}px`, color };
  Object.assign(field.style, place, { maxWidth: `${(WIDTH - x) * scale}px` });
  Object.assign(field, { hidden: false, value: "" });
  field.dataset.at = JSON.stringify([part(x, WIDTH), part(y, HEIGHT)]);
  field.focus();
}

function written(isKept) {
  if (field.hidden) return;
  const text = field.value.trim();
  field.hidden = true;
  if (isKept && text && isOpen()) {
    const at = JSON.parse(field.dataset.at);
    act("texts", { [newId("t")]: { text, color, size: TEXT_SIZES[width], at, order: nextOrder() } });
  }
}

// --- pointer and keys on the drawing area

const placeOf = (event) => [event.offsetX / scale, event.offsetY / scale];

upper.onpointerdown = (event) => {
  if (!event.isPrimary || event.button !== 0 || !isOpen()) return;
  written(true);
  cursor = null;
  if (tool !== "text") upper.setPointerCapture(event.pointerId);
  else event.preventDefault(); // the field keeps the focus it is given
  begin(...placeOf(event));
};
upper.onpointermove = (event) => {
  if (event.isPrimary && cursor === null && (line !== null || erased !== null)) {
    for (const one of event.getCoalescedEvents?.() ?? [event]) goOn(...placeOf(one));
  }
};
upper.onpointerup = upper.onpointercancel = (event) => {
  if (event.isPrimary && cursor === null) end();
};

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

upper.onkeydown = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !isOpen()) return;
  const move = MOVES[event.key];
  if (move !== undefined) {
    const step = event.shiftKey ? 80 : 16;
    const [x, y] = cursor ?? [WIDTH / 2, HEIGHT / 2];
    cursor = [Math.min(Math.max(x + move[0] * step, 0), WIDTH), Math.min(Math.max(y + move[1] * step, 0), HEIGHT)];
    if (line !== null) goOn(...cursor);
  } else if (event.key === " " || event.key === "Enter") {
    cursor ??= [WIDTH / 2, HEIGHT / 2];
    if (line !== null) end();
    else begin(...cursor);
    if (erased !== null) end();
    if (line !== null) tell(word("down"));
  } else if (event.key === "Escape" && line !== null) {
    line = null;
  } else return;
  event.preventDefault();
  drawCursor();
};
upper.onblur = () => {
  if (cursor !== null && line !== null) end();
  cursor = null;
  drawCursor();
};

/** The cursor of the keyboard, over the stroke it draws. */
function drawCursor() {
  wet.clearRect(0, 0, WIDTH, HEIGHT);
  if (line !== null) {
    Object.assign(wet, { strokeStyle: color, lineWidth: PEN_WIDTHS[width] * UNIT });
    wet.beginPath();
    for (let n = 0; n < line.length; n += 2) wet.lineTo(line[n], line[n + 1]);
    wet.stroke();
  }
  if (cursor === null) return;
  const [x, y] = cursor;
  for (const [style, thick] of [["#ffffff", 6], ["#171a21", 2]]) {
    Object.assign(wet, { strokeStyle: style, lineWidth: thick });
    wet.beginPath();
    for (const [dx, dy] of Object.values(MOVES)) wet.moveTo(x + dx * 6, y + dy * 6), wet.lineTo(x + dx * 18, y + dy * 18);
    wet.stroke();
  }
}

field.onkeydown = (event) => {
  if (event.isComposing || (event.key !== "Enter" && event.key !== "Escape")) return;
  written(event.key === "Enter");
  upper.focus();
};
field.onblur = () => written(true);
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z" && event.target !== field) {
    event.preventDefault();
    undo();
  }
});
