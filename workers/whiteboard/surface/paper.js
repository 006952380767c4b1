// The paper of the Whiteboard: what of the state can be drawn, and the two canvases it is drawn on. The next script is board.js.
// 1. A stroke under the pen lives on the upper canvas and grows by its newest piece; the lower one holds what the state holds. Neither is
//    drawn anew because of one more stroke; what is taken away repaints its own rectangle.
// 2. The state is read with care: what is not a stroke or a text of the known form is not drawn.

const WIDTH = 1600;
const HEIGHT = 1000;
const UNIT = WIDTH / 1000;
const ERASER = 12; // how near, in the board's own measure

// --- items: what of the state can be drawn, in the board's own measure

/** @typedef {"strokes" | "texts"} Kind */
/** @typedef {[left: number, top: number, right: number, bottom: number]} Box */
/** @typedef {{ id: string, key: string, order: number, color: string, points: number[], box: Box }} Drawable */
/** @typedef {Drawable & { kind: "strokes", width: number, path: Path2D }} Stroke */
/** @typedef {Drawable & { kind: "texts", size: number, text: string }} Written */
/** @typedef {Stroke | Written} Item */

/** @param {LineupJson | undefined} value @returns {value is LineupState} */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
/** @param {LineupJson | undefined} value @returns {value is number} */
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const colorOf = (/** @type {LineupState} */ { color }) => (typeof color === "string" && /^#[0-9a-f]{6}$/i.test(color) ? color : "#000000");
const orderOf = (/** @type {LineupState} */ { order }) => (isNumber(order) ? order : 0);
const placesOf = (/** @type {LineupJson | undefined} */ places) =>
  Array.isArray(places) && places.length % 2 === 0 && places.every(isNumber) ? places : [];
const inner = penOf(document.createElement("canvas")); // measures texts

/** @param {HTMLCanvasElement} canvas */
function penOf(canvas) {
  const pen = canvas.getContext("2d");
  if (pen === null) throw new Error("this browser draws nothing");
  return pen;
}

/** @param {string} id @param {LineupJson | undefined} given @returns {Stroke | null} */
function strokeOf(id, given) {
  if (!isObject(given)) return null;
  const places = placesOf(given.points);
  if (places.length < 2) return null;
  const width = (isNumber(given.width) ? given.width : 2) * UNIT;
  const points = places.map((part, n) => Math.min(Math.max(part, 0), 1) * (n % 2 ? HEIGHT : WIDTH));
  const path = new Path2D();
  path.moveTo(points[0], points[1]);
  for (let n = 0; n < points.length; n += 2) path.lineTo(points[n], points[n + 1]);
  const box = boxOf(points, width / 2 + 1);
  return { id, kind: "strokes", key: `strokes/${id}`, order: orderOf(given), color: colorOf(given), width, points, path, box };
}

/** @param {string} id @param {LineupJson | undefined} given @returns {Written | null} */
function textOf(id, given) {
  if (!isObject(given)) return null;
  const [x, y] = placesOf(given.at);
  if (x === undefined || y === undefined || typeof given.text !== "string" || !given.text.trim()) return null;
  const size = (isNumber(given.size) ? given.size : 20) * UNIT;
  const text = given.text.trim().split(/\s+/).join(" ").slice(0, 200);
  inner.font = `${size}px sans-serif`;
  const [left, base] = [x * WIDTH, y * HEIGHT];
  const points = [left, base - size, left + inner.measureText(text).width, base + size / 3];
  return { id, kind: "texts", key: `texts/${id}`, order: orderOf(given), color: colorOf(given), size, text, points, box: boxOf(points, 2) };
}

/** @param {number[]} points @param {number} margin */
function boxOf(points, margin) {
  /** @type {Box} */
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (let n = 0; n < points.length; n += 2) {
    box[0] = Math.min(box[0], points[n] - margin);
    box[1] = Math.min(box[1], points[n + 1] - margin);
    box[2] = Math.max(box[2], points[n] + margin);
    box[3] = Math.max(box[3], points[n + 1] + margin);
  }
  return box;
}

const meet = (/** @type {Box} */ a, /** @type {Box} */ b) => a[0] <= b[2] && b[0] <= a[2] && a[1] <= b[3] && b[1] <= a[3];

/** @param {Item} item @param {number} x @param {number} y */
function isHit(item, x, y) {
  const near = ERASER + (item.kind === "strokes" ? item.width / 2 : 0);
  if (!meet(item.box, [x - near, y - near, x + near, y + near])) return false;
  if (item.kind === "texts") return true;
  const { points } = item;
  if (points.length === 2) return Math.hypot(points[0] - x, points[1] - y) <= near;
  for (let n = 2; n < points.length; n += 2) if (distance(points, n - 2, n, x, y) <= near) return true;
  return false;
}

/**
 * From a place to the piece of a line between two of its points.
 * @param {number[]} points @param {number} from @param {number} to @param {number} x @param {number} y
 */
function distance(points, from, to, x, y) {
  const [ax, ay, dx, dy] = [points[from], points[from + 1], points[to] - points[from], points[to + 1] - points[from + 1]];
  const length = dx * dx + dy * dy;
  const part = length === 0 ? 0 : Math.min(Math.max(((x - ax) * dx + (y - ay) * dy) / length, 0), 1);
  return Math.hypot(ax + part * dx - x, ay + part * dy - y);
}

/**
 * The points a line needs so that it is nowhere farther than `most` from where it was (Douglas and Peucker).
 * @param {number[]} points @param {number} most
 */
function simplified(points, most) {
  const kept = new Set([0, points.length - 2]);
  /** @type {[number, number][]} */
  const open = [[0, points.length - 2]];
  for (let piece = open.pop(); piece !== undefined; piece = open.pop()) {
    const [from, to] = piece;
    let [far, at] = [most, -1];
    for (let n = from + 2; n < to; n += 2) {
      const off = distance(points, from, to, points[n], points[n + 1]);
      if (off > far) [far, at] = [off, n];
    }
    if (at < 0) continue;
    kept.add(at);
    open.push([from, at], [at, to]);
  }
  return [...kept].sort((a, b) => a - b).flatMap((n) => [points[n], points[n + 1]]);
}

// --- the paper: two canvases of one size; the board's own measure is 1600 x 1000

const lower = el("canvas");
const upper = el("canvas", { tabIndex: 0, role: "application" });
const help = el("p", { className: "hidden", id: "help" });
upper.setAttribute("aria-describedby", "help");
const field = el("input", { type: "text", maxLength: 200, hidden: true });
const paper = el("div", { className: "paper" }, lower, upper, field);
const desk = el("div", { className: "desk" }, paper);
const ink = penOf(lower);
const wet = penOf(upper);
/** @type {Item[]} Of the board that is shown, in their order. */
let items = [];
/** @type {Map<string, Item>} */
let byKey = new Map();
let scale = 1; // CSS pixels of one measure

function fit() {
  const { clientWidth, clientHeight } = desk;
  scale = Math.max(Math.min((clientWidth - 20) / WIDTH, (clientHeight - 20) / HEIGHT), 0.05);
  Object.assign(paper.style, { width: `${WIDTH * scale}px`, height: `${HEIGHT * scale}px` });
  for (const canvas of [lower, upper]) {
    canvas.width = Math.round(WIDTH * scale * devicePixelRatio);
    canvas.height = Math.round(HEIGHT * scale * devicePixelRatio);
  }
  const zoom = lower.width / WIDTH;
  for (const pen of [ink, wet]) {
    pen.setTransform(zoom, 0, 0, zoom, 0, 0);
    pen.lineCap = pen.lineJoin = "round";
  }
  repaint([0, 0, WIDTH, HEIGHT]);
}

/** @param {Item} item */
function drawItem(item) {
  if (item.kind === "strokes") {
    ink.strokeStyle = item.color;
    ink.lineWidth = item.width;
    ink.stroke(item.path);
  } else {
    ink.fillStyle = item.color;
    ink.font = `${item.size}px sans-serif`;
    ink.fillText(item.text, item.points[0], item.points[1] + item.size);
  }
}

/** @param {Box} box */
function repaint(box) {
  const zoom = lower.width / WIDTH; // whole pixels: a seam would show where a piece was painted anew
  const [left, top] = [Math.floor(box[0] * zoom) / zoom, Math.floor(box[1] * zoom) / zoom];
  /** @type {Box} */
  const area = [left, top, Math.ceil(box[2] * zoom) / zoom - left, Math.ceil(box[3] * zoom) / zoom - top];
  ink.save();
  ink.beginPath();
  ink.rect(...area);
  ink.clip();
  ink.fillStyle = "#ffffff";
  ink.fillRect(...area);
  for (const item of items) if (meet(item.box, box)) drawItem(item);
  ink.restore();
}

/** @param {Item} item */
function take(item) {
  const last = items.at(-1);
  byKey.set(item.key, item);
  if (last === undefined || last.order <= item.order) {
    items.push(item);
    drawItem(item);
  } else {
    items.splice(items.findIndex((one) => one.order > item.order), 0, item);
    repaint(item.box);
  }
}

/** @param {string} key */
function drop(key) {
  const item = byKey.get(key);
  if (item === undefined) return;
  byKey.delete(key);
  items.splice(items.indexOf(item), 1);
  repaint(item.box);
}

/** Take a board up anew. @param {Board | undefined} given */
function takeAll(given) {
  const all = [
    ...Object.entries(given?.strokes ?? {}).map(([id, one]) => strokeOf(id, one)),
    ...Object.entries(given?.texts ?? {}).map(([id, one]) => textOf(id, one)),
  ];
  items = all.filter((item) => item !== null).sort((a, b) => a.order - b.order);
  byKey = new Map(items.map((item) => [item.key, item]));
  repaint([0, 0, WIDTH, HEIGHT]);
}
