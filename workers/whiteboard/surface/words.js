// The words of the Whiteboard, English and Chinese, and how an element is made. The first of its scripts; the next is paper.js.
/// <reference path="../../../sdk/lineup_sdk/surface_js/lineup-surface.d.ts" />

const WORDS = {
  title: ["Whiteboard", "白板"],
  boards: ["Boards", "画板"],
  empty: ["No board is open. The Agent opens one when it wants you to draw.", "没有打开的画板。智能体想请你画图时会打开一个。"],
  tools: ["Tool", "工具"],
  pen: ["Pen", "画笔"],
  eraser: ["Eraser", "橡皮"],
  text: ["Text", "文字"],
  colors: ["Colour", "颜色"],
  colorNames: [["Blue", "Red", "Green", "Orange", "Purple", "Black"], ["蓝色", "红色", "绿色", "橙色", "紫色", "黑色"]],
  widths: ["Width", "粗细"],
  widthNames: [["Fine", "Medium", "Broad", "Very broad"], ["细", "中", "粗", "特粗"]],
  undo: ["Undo", "撤销"],
  submit: ["Submit", "提交"],
  submitting: ["Submitting …", "正在提交…"],
  cancel: ["Discard", "放弃"],
  ask: ["Discard this board?", "放弃这个画板吗？"],
  yes: ["Discard it", "放弃"],
  no: ["Keep it", "保留"],
  canvas: ["Drawing area", "绘图区"],
  help: [
    "Arrow keys move the pen, with Shift farther. Space or Enter uses the tool: puts the pen down and lifts it, erases, or writes.",
    "方向键移动画笔，按住 Shift 移动更远。空格键或回车键使用工具：落笔与提笔、擦除或写字。",
  ],
  write: ["Text on the board", "画板上的文字"],
  down: ["Pen down", "已落笔"],
  strokes: [(n) => (n === 1 ? "1 stroke" : `${n} strokes`), (n) => `${n} 笔`],
  texts: [(n) => (n === 1 ? "1 text" : `${n} texts`), (n) => `${n} 段文字`],
  submitted: ["Submitted", "已提交"],
  cancelled: ["Discarded", "已放弃"],
  refused: ["That was not kept: ", "没有保存："],
};

const { surface } = lineup;
const word = (name) => WORDS[name][surface.lang === "zh" ? 1 : 0];

/** An element with properties, attributes (aria-*, role) and children. */
function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
