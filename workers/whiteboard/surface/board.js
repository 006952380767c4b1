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

/** @typedef {{ status: "open" | "submitted" | "cancelled", [name: string]: LineupJson }} Board */
/** @typedef {"pen" | "eraser" | "text"} Tool */
/** @typedef {[x: number, y: number]} Place */

/** @type {LineupState} */
let state = {};
/** @type {string | null} */
let shownId = null;
/** @type {Tool} */
let tool = "pen";
let color = COLORS[0];
let width = 1; // which of the widths
/** @type {number[] | null} Raw points of the stroke under the pen. */
let line = null;
/** @type {Record<Kind, LineupState> | null} What the eraser took in this move: ids with null. */
let erased = null;
/** @type {Place | null} Where it was last. */
let wiped = null;
/** @type {Place | null} Of the keyboard, while it is used. */
let cursor = null;
let isSending = false;
let lastNumber = 0;
/** @type {{ board: string, kind: Kind, given: LineupState }[]} */
const undos = [];

/** @param {LineupJson | undefined} one @returns {one is Board} */
const isBoard = (one) => isObject(one) && (one.status === "open" || one.status === "submitted" || one.status === "cancelled");
/** @param {LineupState | undefined} whole @param {string | null} id */
const boardIn = (whole, id) => {
  const found = id !== null && isObject(whole?.boards) ? whole.boards[id] : undefined;
  return isBoard(found) ? found : undefined;
};
const boards = () =>
  Object.keys(isObject(state.boards) ? state.boards : {}).flatMap((id) => {
    const found = boardIn(state, id);
    return found ? [{ id, board: found, title: typeof found.title === "string" ? found.title : id }] : [];
  });
const board = () => boardIn(state, shownId);
const isOpen = () => board()?.status === "open" && !isSending;
const part = (/** @type {number} */ value, /** @type {number} */ whole) => Math.round(Math.min(Math.max(value / whole, 0), 1) * 1e4) / 1e4;
const newId = (/** @type {"s" | "t"} */ kind) =>
  `${kind}${Date.now().toString(36)}-${(lastNumber += 1).toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
const nextOrder = () => (items.at(-1)?.order ?? 0) + 1;

/** @param {unknown} refused */
const codeOf = (refused) => (refused instanceof Error && "code" in refused ? String(refused.code) : "unknown");

/** @param {string} boardId @param {Kind} kind @param {LineupState} given */
async function change(boardId, kind, given) {
  for (const some of inParts(given)) {
    try {
      await surface.patch({ boards: { [boardId]: { [kind]: some } } });
    } catch (refused) {
      tell(words().refused + codeOf(refused));
    }
  }
}

/** So many members at a time as one patch holds. @param {LineupState} given */
function inParts(given) {
  /** @type {LineupState} */
  let some = {};
  const found = [some];
  let size = 0;
  for (const [id, one] of Object.entries(given)) {
    const weight = JSON.stringify(one).length + id.length + 8;
    if (size > 0 && size + weight > MAX_PART) {
      some = {};
      found.push(some);
      size = 0;
    }
    some[id] = one;
    size += weight;
  }
  return found;
}

/** @param {Kind} kind @param {LineupState} given */
function act(kind, given) {
  if (shownId === null) return;
  const before = membersOf(board(), kind);
  undos.push({ board: shownId, kind, given: Object.fromEntries(Object.keys(given).map((id) => [id, before[id] ?? null])) });
  if (undos.length > MAX_UNDO) undos.shift();
  change(shownId, kind, given);
}

/** @param {Board | undefined} whole @param {Kind} kind @returns {LineupState} */
function membersOf(whole, kind) {
  const members = whole?.[kind];
  return isObject(members) ? members : {};
}

function undo() {
  const last = undos.findLast((one) => one.board === shownId);
  if (last === undefined || !isOpen()) return;
  undos.splice(undos.lastIndexOf(last), 1);
  change(last.board, last.kind, last.given);
}

// --- the tools: begin, go on, end, in the board's own measure

/** @param {number} x @param {number} y */
function begin(x, y) {
  if (tool === "text") return write(x, y);
  if (tool === "eraser") erased = { strokes: {}, texts: {} };
  else line = [x, y];
  return goOn(x, y);
}

/** @param {number} x @param {number} y */
function goOn(x, y) {
  if (erased !== null) {
    const [fromX, fromY] = wiped ?? [x, y];
    const steps = Math.ceil(Math.hypot(x - fromX, y - fromY) / ERASER) || 1;
    for (let n = 1; n <= steps; n += 1) wipe(fromX + ((x - fromX) * n) / steps, fromY + ((y - fromY) * n) / steps);
    wiped = [x, y];
  } else if (line !== null) {
    const [fromX = x, fromY = y] = line.slice(-2);
    line.push(x, y);
    Object.assign(wet, { strokeStyle: color, lineWidth: PEN_WIDTHS[width] * UNIT });
    wet.beginPath();
    wet.moveTo(fromX, fromY);
    wet.lineTo(x, y);
    wet.stroke();
    if (line.length >= 2 * MAX_RAW_POINTS) {
      end();
      line = [x, y];
    }
  }
}

/** @param {number} x @param {number} y */
function wipe(x, y) {
  for (const item of items.filter((one) => isHit(one, x, y))) {
    if (erased !== null) erased[item.kind][item.id] = null;
    drop(item.key);
  }
}

function end() {
  if (erased !== null) {
    const { strokes, texts } = erased;
    erased = wiped = null;
    if (Object.keys(strokes).length > 0) act("strokes", strokes);
    if (Object.keys(texts).length > 0) act("texts", texts);
  } else if (line !== null) {
    const points = simplified(line, 0.5).map((value, n) => part(value, n % 2 ? HEIGHT : WIDTH));
    const isDot = points.length === 4 && points[0] === points[2] && points[1] === points[3];
    line = null;
    wet.clearRect(0, 0, WIDTH, HEIGHT);
    act("strokes", { [newId("s")]: { color, width: PEN_WIDTHS[width], points: isDot ? points.slice(0, 2) : points, order: nextOrder() } });
  }
  drawCursor();
}

/** @param {number} x @param {number} y */
function write(x, y) {
  const size = TEXT_SIZES[width] * UNIT;
  const place = { left: `${x * scale}px`, top: `${(y - size * 1.1) * scale}px`, fontSize: `${size * scale}px`, color };
  Object.assign(field.style, place, { maxWidth: `${(WIDTH - x) * scale}px` });
  Object.assign(field, { hidden: false, value: "" });
  field.dataset.at = JSON.stringify([part(x, WIDTH), part(y, HEIGHT)]);
  field.focus();
}

/** The field is done with: what stands in it becomes a text, or nothing. @param {boolean} isKept */
function written(isKept) {
  if (field.hidden) return;
  const text = field.value.trim();
  field.hidden = true;
  if (isKept && text && isOpen()) {
    const at = JSON.parse(field.dataset.at ?? "[]");
    act("texts", { [newId("t")]: { text, color, size: TEXT_SIZES[width], at, order: nextOrder() } });
  }
}

// --- pointer and keys on the drawing area

/** @param {PointerEvent} event @returns {Place} */
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

/** @type {{ [key: string]: Place }} */
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
    if (line !== null) tell(words().down);
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
