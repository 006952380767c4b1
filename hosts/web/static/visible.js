/**
 * Untrusted text made safe to look at, by the rules of hosts/visible.py: what could steer, hide or turn the direction becomes a sign.
 * 1. The result is text; nothing here or later reads it as markup.
 * 2. Lengths are code points, as the kernel counts them.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;
const MARKS = /([\p{Mn}\p{Me}]{4})[\p{Mn}\p{Me}]+/gu;
const JOINER = "\u200d"; // joins emoji; harmless and needed

/** @param {string} sign */
function shown(sign) {
  const number = sign.codePointAt(0) ?? 0;
  if (number < 0x20) return String.fromCodePoint(0x2400 + number);
  if (number === 0x7f) return "\u2421";
  return `<U+${number.toString(16).toUpperCase().padStart(4, "0")}>`;
}

/** The text with everything that could steer or hide as a visible sign; newlines stay, a tab becomes spaces. @param {string} untrusted */
export function visible(untrusted) {
  return untrusted
    .replace(HIDDEN, (sign) => (sign === "\n" || sign === JOINER ? sign : sign === "\t" ? "    " : shown(sign)))
    .replace(MARKS, "$1");
}

/** Visible text on one line, cut after so many code points. @param {unknown} untrusted @param {number} [most] */
export function oneLine(untrusted, most = 200) {
  const points = [...visible(String(untrusted ?? "")).replaceAll("\n", "␊")];
  return points.length <= most ? points.join("") : `${points.slice(0, most - 1).join("")}…`;
}

/** How many code points a text has. @param {string} text */
export function codePoints(text) {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
