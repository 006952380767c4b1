/**
 * The page's words in the language that is spoken: one catalogue a language in two files, the same keys in each (a test compares them).
 * `{name}` in a text is filled in; a text may be a function of its parameters where a language needs more than that.
 */
/** @import { Language } from "../types.d.ts" */
import { EN } from "./en.js";
import { EN_KERNEL } from "./kernel_en.js";
import { ZH_KERNEL } from "./kernel_zh.js";
import { ZH } from "./zh.js";

/** @typedef {Readonly<Record<string, string>>} Catalogue */
/** @typedef {Readonly<Record<string, string | number>>} Params */

/** @type {Readonly<Record<Language, Catalogue>>} */
export const CATALOGUES = { en: { ...EN, ...EN_KERNEL }, zh: { ...ZH, ...ZH_KERNEL } };

/** @type {Language} */
let spoken = "en";

/** @param {Language} lang */
export function setLanguage(lang) {
  spoken = lang;
}

/** The language a browser asks for, as far as there is one. @param {readonly string[]} wanted @returns {Language} */
export function languageOf(wanted) {
  const found = wanted.map((tag) => tag.toLowerCase().split("-")[0]).find((tag) => tag in CATALOGUES);
  return found === "zh" ? "zh" : "en";
}

/**
 * Words by key. With `count` in the parameters, `key.one` is taken for 1 when there is such a text.
 * @param {string} key
 * @param {Params} [params]
 */
export function t(key, params = {}) {
  const catalogue = CATALOGUES[spoken];
  const text = (params.count === 1 ? catalogue[`${key}.one`] : undefined) ?? catalogue[key] ?? key;
  return text.replace(/\{([a-z]+)\}/g, (whole, name) => (name in params ? String(params[name]) : whole));
}

/** Words by key, or the given text where there are none: for tokens a newer kernel may know. @param {string} key @param {string} other */
export const tOr = (key, other) => CATALOGUES[spoken][key] ?? other;

/** An App's title: a Manifest has one, those of our own Apps stand in the catalogue. @param {{ app_scope: string, title: string }} app */
export const appTitle = ({ app_scope, title }) => tOr(`builtin.${app_scope}`, title);
/** A tool's title, in the same way. @param {{ tool_id: string, title?: string }} tool */
export const toolTitle = ({ tool_id, title }) => tOr(`tool.${tool_id}`, title || tool_id);

/** What a code of the kernel means to a person. @param {string} code */
export const wordsOfCode = (code) => tOr(`code.${code}`, t("code.other", { code }));

const LOCALES = { en: "en-GB", zh: "zh-CN" };

/** @param {string} at RFC 3339 @returns {string} the time of day */
export const timeOfDay = (at) => new Intl.DateTimeFormat(LOCALES[spoken], { hour: "2-digit", minute: "2-digit" }).format(new Date(at));
/** @param {string} at RFC 3339 @returns {string} */
export const day = (at) =>
  new Intl.DateTimeFormat(LOCALES[spoken], { weekday: "long", day: "numeric", month: "long" }).format(new Date(at));
/** @param {string} at RFC 3339 @returns {string} */
export const dayAndTime = (at) =>
  new Intl.DateTimeFormat(LOCALES[spoken], { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }).format(new Date(at));
/** @param {string} at RFC 3339 @returns {string} to the second */
export const moment = (at) => new Intl.DateTimeFormat(LOCALES[spoken], { dateStyle: "short", timeStyle: "medium" }).format(new Date(at));
/** @param {number} value */
export const numberWords = (value) => new Intl.NumberFormat(LOCALES[spoken], { maximumFractionDigits: 6 }).format(value);

/** How many bytes, for a person. @param {number} bytes */
export function sizeWords(bytes) {
  if (bytes < 1024) return t("size.bytes", { count: bytes });
  return bytes < 1024 * 1024 ? `${numberWords(Math.round(bytes / 102.4) / 10)} KB` : `${numberWords(Math.round(bytes / 104857.6) / 10)} MB`;
}
