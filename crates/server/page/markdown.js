// Markdown as a tree of what may be drawn. No HTML string is ever made: what is HTML, an image, or a link to
// anywhere but the web and mail stays the text that it was.

import { lexer } from "./vendor/marked/marked.esm.js";
import { clean, figures } from "./words.js";

/** Longer texts stay plain: laying them out would hold up typing. */
const TEXT_MAX = 32 << 10;

/** What is nested deeper stays plain. */
const DEPTH_MAX = 24;

/** What would be more elements stays plain: a few of those, and typing is slow. */
const ELEMENTS_MAX = 1_500;

/** So much of what stays plain is shown, in characters. */
const PLAIN_MAX = 64 << 10;

/**
 * @typedef {"p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "ul" | "ol" | "li" | "blockquote" | "pre" | "code" | "hr" | "br"
 *   | "strong" | "em" | "del" | "a" | "table" | "tr" | "th" | "td" | "task" | "plain"} Tag
 * @typedef {{tag: Tag, inner: Node[], href?: string, start?: number, checked?: boolean, align?: string}} Element
 * @typedef {string | Element} Node
 * @typedef {import("./vendor/marked/marked.d.ts").Token} Token
 */

/**
 * What is to be drawn of a text.
 * @param {string} text
 * @returns {Node[]}
 */
export function markdown(text) {
  if (text.length > TEXT_MAX) return [element("plain", [plain(text)])];
  const shown = clean(text);
  try {
    const all = nodes(lexer(shown, { gfm: true }), 0);
    if (count(all) <= ELEMENTS_MAX) return all;
  } catch {
    // Nested so deep that the lexer's stack, or our patience, was not enough.
  }
  return [element("plain", [shown])];
}

/**
 * A text that is not laid out; of a long one the beginning.
 * @param {string} text
 */
export function plain(text) {
  const more = text.length - PLAIN_MAX;
  return more <= 0 ? clean(text) : `${clean(text.slice(0, PLAIN_MAX))}\n… ${figures.bytes(more)} more`;
}

/**
 * How many elements these are, with what is in them.
 * @param {Node[]} all
 * @returns {number}
 */
export function count(all) {
  return all.reduce((sum, it) => sum + (typeof it === "string" ? 0 : 1 + count(it.inner)), 0);
}

/**
 * @param {Tag} tag
 * @param {Node[]} inner
 * @param {Partial<Element>} [more]
 * @returns {Element}
 */
function element(tag, inner, more) {
  return { tag, inner, ...more };
}

/**
 * @param {Token[]} tokens
 * @param {number} depth
 * @returns {Node[]}
 */
function nodes(tokens, depth) {
  if (depth > DEPTH_MAX) throw new RangeError("nested too deep");
  return tokens.flatMap((token) => block(/** @type {any} */ (token), depth + 1));
}

/**
 * @param {any} token
 * @param {number} depth
 * @returns {Node[]}
 */
function block(token, depth) {
  switch (token.type) {
    case "space":
    case "def":
      return [];
    case "heading":
      return [element(/** @type {Tag} */ (`h${token.depth}`), nodes(token.tokens, depth))];
    case "paragraph":
      return [element("p", nodes(token.tokens, depth))];
    case "blockquote":
      return [element("blockquote", nodes(token.tokens, depth))];
    case "code":
      return [element("pre", [clean(token.text)])];
    case "hr":
      return [element("hr", [])];
    case "list":
      return [list(token, depth)];
    case "table":
      return [table(token, depth)];
    default:
      return inline(token, depth);
  }
}

/**
 * @param {any} token
 * @param {number} depth
 * @returns {Node[]}
 */
function inline(token, depth) {
  switch (token.type) {
    case "strong":
    case "em":
    case "del":
      return [element(token.type, nodes(token.tokens, depth))];
    case "codespan":
      return [element("code", [clean(token.text)])];
    case "br":
      return [element("br", [])];
    case "link":
      return link(token, depth);
    case "checkbox":
      return [];
    case "text":
      return token.tokens ? nodes(token.tokens, depth) : [decoded(token.text)];
    case "escape":
      return [clean(token.text)];
    default:
      // HTML, images, and what a newer lexer may know.
      return [clean(token.raw)];
  }
}

/**
 * @param {any} token
 * @param {number} depth
 * @returns {Node[]}
 */
function link(token, depth) {
  const href = address(token.href);
  if (href === undefined) return [clean(token.raw)];
  const shown = element("a", nodes(token.tokens, depth), { href });
  // What a link says may be another address than where it goes.
  const says = address(token.text) ?? address(`mailto:${token.text}`);
  return says === href ? [shown] : [shown, ` (${clean(place(href))})`];
}

/**
 * Where a link may go; `undefined` where it may not.
 * @param {string} href
 */
function address(href) {
  try {
    const url = new URL(href);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

/** @param {string} href */
function place(href) {
  const url = new URL(href);
  return url.protocol === "mailto:" ? url.pathname : url.host;
}

/**
 * @param {any} token
 * @param {number} depth
 * @returns {Node}
 */
function list(token, depth) {
  const items = token.items.map((/** @type {any} */ item) => {
    const inner = nodes(item.tokens, depth + 1);
    return element("li", item.task ? [element("task", [], { checked: item.checked === true }), ...inner] : inner);
  });
  const start = Number.isSafeInteger(token.start) ? token.start : 1;
  return token.ordered ? element("ol", items, { start }) : element("ul", items);
}

/**
 * @param {any} token
 * @param {number} depth
 * @returns {Node}
 */
function table(token, depth) {
  /**
   * @param {Tag} tag
   * @param {any[]} cells
   */
  const row = (tag, cells) => {
    const inner = cells.map((cell, n) => element(tag, nodes(cell.tokens, depth + 1), { align: token.align[n] ?? "start" }));
    return element("tr", inner);
  };
  return element("table", [row("th", token.header), ...token.rows.map((/** @type {any[]} */ cells) => row("td", cells))]);
}

/** The named characters that models write; others stay as they were written. */
const NAMED = new Map(Object.entries({
  amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", trade: "™", hellip: "…", mdash: "—",
  ndash: "–", lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”", laquo: "«", raquo: "»", larr: "←", rarr: "→", uarr: "↑", darr: "↓",
  times: "×", middot: "·", bull: "•", deg: "°", le: "≤", ge: "≥", ne: "≠", euro: "€", pound: "£", sect: "§", para: "¶",
}));

/**
 * A text with its entities decoded; what hides behind one goes as it does elsewhere.
 * @param {string} text
 */
function decoded(text) {
  return clean(text.replace(/&(#[xX][0-9a-fA-F]{1,6}|#[0-9]{1,7}|[a-zA-Z]{2,8});/g, (whole, name) => character(name) ?? whole));
}

/** @param {string} name */
function character(name) {
  if (!name.startsWith("#")) return NAMED.get(name);
  const code = /^#[xX]/.test(name) ? parseInt(name.slice(2), 16) : parseInt(name.slice(1), 10);
  const isOne = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
  return isOne ? String.fromCodePoint(code) : "\ufffd";
}
