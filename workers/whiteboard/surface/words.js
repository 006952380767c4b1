// The words of the Whiteboard, English and Chinese, and how an element is made. The first of its scripts; the next is paper.js.
/// <reference path="../../../sdk/lineup_sdk/surface_js/lineup-surface.d.ts" />

/**
 * @typedef {Record<"title" | "boards" | "empty" | "tools" | "colors" | "widths" | "undo" | "submit" | "submitting" | "cancel" | "ask"
 *   | "yes" | "no" | "canvas" | "help" | "write" | "down" | "refused", string>} Labels
 * @typedef {Labels & {
 *   toolNames: Record<Tool, string>, colorNames: string[], widthNames: string[], ended: Record<"submitted" | "cancelled", string>,
 *   strokes: (n: number) => string, texts: (n: number) => string,
 * }} Words
 */

/** @type {Record<LineupLook["lang"], Words>} */
const WORDS = {
  en: {
    title: "Whiteboard",
    boards: "Boards",
    empty: "No board is open. The Agent opens one when it wants you to draw.",
    tools: "Tool",
    toolNames: { pen: "Pen", eraser: "Eraser", text: "Text" },
    colors: "Colour",
    colorNames: ["Blue", "Red", "Green", "Orange", "Purple", "Black"],
    widths: "Width",
    widthNames: ["Fine", "Medium", "Broad", "Very broad"],
    undo: "Undo",
    submit: "Submit",
    submitting: "Submitting …",
    cancel: "Discard",
    ask: "Discard this board?",
    yes: "Discard it",
    no: "Keep it",
    canvas: "Drawing area",
    help: "Arrow keys move the pen, with Shift farther. Space or Enter uses the tool: puts the pen down and lifts it, erases, or writes.",
    write: "Text on the board",
    down: "Pen down",
    strokes: (n) => (n === 1 ? "1 stroke" : `${n} strokes`),
    texts: (n) => (n === 1 ? "1 text" : `${n} texts`),
    ended: { submitted: "Submitted: the Agent answers in the conversation", cancelled: "Discarded" },
    refused: "That was not kept: ",
  },
  zh: {
    title: "白板",
    boards: "画板",
    empty: "没有打开的画板。Agent 想请你画图时会打开一个。",
    tools: "工具",
    toolNames: { pen: "画笔", eraser: "橡皮", text: "文字" },
    colors: "颜色",
    colorNames: ["蓝色", "红色", "绿色", "橙色", "紫色", "黑色"],
    widths: "粗细",
    widthNames: ["细", "中", "粗", "特粗"],
    undo: "撤销",
    submit: "提交",
    submitting: "正在提交…",
    cancel: "放弃",
    ask: "放弃这个画板吗？",
    yes: "放弃",
    no: "保留",
    canvas: "绘图区",
    help: "方向键移动画笔，按住 Shift 移动更远。空格键或回车键使用工具：落笔与提笔、擦除或写字。",
    write: "画板上的文字",
    down: "已落笔",
    strokes: (n) => `${n} 笔`,
    texts: (n) => `${n} 段文字`,
    ended: { submitted: "已提交，Agent 会在对话中答复", cancelled: "已放弃" },
    refused: "没有保存：",
  },
};

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
