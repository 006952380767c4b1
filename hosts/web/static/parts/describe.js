/** A JSON value as people read it: labelled lists, not brackets. Bounded in depth and length; what is left out is said. */
/** @import { Json } from "../types.d.ts" */
import { numberWords, t, tOr } from "../i18n/words.js";
import { html } from "../vendor/htm-preact.js";
import { oneLine, visible } from "../visible.js";
import { Artifact } from "./artifact.js";

const MAX_DEPTH = 6;
const MAX_ROWS = 40;
const MAX_TEXT = 2000;
const ARTIFACT = /(?:^|_)artifact_id$/;

/** `board_id` as “Board id”. @param {string} name */
export function labelOf(name) {
  const words = oneLine(name, 60)
    .replace(/[_.-]+/g, " ")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .trim();
  return words ? words[0].toUpperCase() + words.slice(1).toLowerCase() : "–";
}

/** @param {{ value: Json | undefined, name?: string, depth?: number, labels?: Readonly<Record<string, string>> }} props @returns {any} */
export function Described({ value, name = "", depth = 0, labels = {} }) {
  if (value === null || value === undefined) return html`<span class="muted">${t("value.none")}</span>`;
  if (typeof value === "boolean") return t(value ? "value.yes" : "value.no");
  if (typeof value === "number") return numberWords(value);
  if (typeof value === "string")
    return ARTIFACT.test(name) ? html`<${Artifact} id=${value} />` : html`<${Words} text=${value} name=${name} />`;
  if (depth >= MAX_DEPTH) return "…";
  return Array.isArray(value)
    ? html`<${Rows} rows=${value} name=${name} depth=${depth} labels=${labels} />`
    : html`<${Members} value=${value} depth=${depth} labels=${labels} />`;
}

/** @param {{ text: string, name: string }} props */
function Words({ text, name }) {
  if (text === "") return html`<span class="muted">${t("value.empty")}</span>`;
  if (name === "status" || name === "state" || name === "outcome") return tOr(`state.${text}`, oneLine(text));
  const points = [...visible(text)];
  return html`<span class="value-text" dir="auto"
    >${points.length > MAX_TEXT ? `${points.slice(0, MAX_TEXT).join("")}…` : points.join("")}</span
  >`;
}

/** @param {{ rows: Json[], name: string, depth: number, labels: Readonly<Record<string, string>> }} props */
function Rows({ rows, name, depth, labels }) {
  if (rows.length === 0) return html`<span class="muted">${t("value.none")}</span>`;
  const shown = rows.slice(0, MAX_ROWS);
  const more = rows.length - shown.length;
  return html`<ul class="described-rows">
    ${shown.map((row, index) => html`<li key=${index}><${Described} value=${row} name=${name} depth=${depth + 1} labels=${labels} /></li>`)}
    ${more ? html`<li class="muted">${t("value.more", { count: more })}</li>` : null}
  </ul>`;
}

/** @param {{ value: { [name: string]: Json }, depth: number, labels: Readonly<Record<string, string>> }} props */
function Members({ value, depth, labels }) {
  const members = Object.entries(value);
  if (members.length === 0) return html`<span class="muted">${t("value.none")}</span>`;
  const more = members.length - MAX_ROWS;
  return html`<dl class="described">
    ${members.slice(0, MAX_ROWS).map(
      ([name, member]) =>
        html`<div key=${name}>
          <dt>${oneLine(labels[name] ?? labelOf(name), 60)}</dt>
          <dd><${Described} value=${member} name=${name} depth=${depth + 1} labels=${labels} /></dd>
        </div>`,
    )}
    ${
      more > 0
        ? html`<div>
            <dt></dt>
            <dd class="muted">${t("value.more", { count: more })}</dd>
          </div>`
        : null
    }
  </dl>`;
}
