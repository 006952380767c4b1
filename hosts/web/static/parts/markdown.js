/**
 * Markdown as the host sends it, a tree, drawn by an allow-list of tags. No HTML string exists here, so Trusted Types can forbid every
 * sink; a tag that is not known gives its text.
 */
/** @import { Tree } from "../types.d.ts" */
import { h, html } from "../vendor/htm-preact.js";
import { visible } from "../visible.js";
import { Artifact } from "./artifact.js";

const TAGS = new Set("p em strong del code pre blockquote ul ol li hr br table thead tbody tr th td".split(" "));
const HEADINGS = new Set(["h1", "h2", "h3", "h4", "h5", "h6"]);
const SAFE_LINK = /^(?:https?:\/\/|mailto:)/i;

/** @param {Tree} node @returns {any} */
function drawn(node) {
  if (typeof node === "string") return visible(node);
  const [tag, attributes, ...children] = node;
  const inner = children.map(drawn);
  if (tag === "a" && SAFE_LINK.test(attributes.href ?? "")) {
    return h("a", { href: attributes.href, target: "_blank", rel: "noopener noreferrer", title: attributes.href }, ...inner);
  }
  if (tag === "img-artifact") return html`<${Artifact} id=${attributes.artifact_id} alt=${attributes.alt ?? ""} />`;
  if (tag === "table") return html`<div class="table-box" tabindex="0">${h("table", null, ...inner)}</div>`;
  if (tag === "pre") return h("pre", { tabIndex: 0 }, ...inner);
  if (HEADINGS.has(tag)) return h("p", { class: `md-heading md-${tag}` }, ...inner); // the page's own headings keep their order
  return TAGS.has(tag) ? h(tag, null, ...inner) : inner;
}

/** @param {{ tree?: Tree[], text: string }} props */
export const Markdown = ({ tree, text }) =>
  html`<div class="markdown" dir="auto">${tree ? tree.map(drawn) : html`<p class="plain">${visible(text)}</p>`}</div>`;
