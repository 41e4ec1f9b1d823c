// Markdown, drawn.

import { html } from "../vendor/lit-html/lit-html.js";
import { count, markdown } from "../markdown.js";

/** @import {Node, Element} from "../markdown.js" */

/**
 * What a model said.
 * @param {string} text
 */
export function prose(text) {
  return html`<div class="prose">${markdown(text).map(node)}</div>`;
}

/** @type {WeakMap<object, number>} */
const counted = new WeakMap();

/**
 * How many elements a reply has: it is counted once.
 * @param {{text: string}} reply
 */
export function elements(reply) {
  const known = counted.get(reply) ?? count(markdown(reply.text));
  counted.set(reply, known);
  return known;
}

/**
 * @param {Node} it
 * @returns {unknown}
 */
function node(it) {
  return typeof it === "string" ? it : DRAWN[it.tag](it, it.inner.map(node));
}

/**
 * A text may begin with any level, so all its headings are of the one that stands below the page's own.
 * @type {Record<import("../markdown.js").Tag, (it: Element, inner: unknown[]) => unknown>}
 */
const DRAWN = {
  p: (_, inner) => html`<p>${inner}</p>`,
  h1: (_, inner) => html`<h3 class="level1">${inner}</h3>`,
  h2: (_, inner) => html`<h3 class="level2">${inner}</h3>`,
  h3: (_, inner) => html`<h3 class="level3">${inner}</h3>`,
  h4: (_, inner) => html`<h3 class="level4">${inner}</h3>`,
  h5: (_, inner) => html`<h3 class="level5">${inner}</h3>`,
  h6: (_, inner) => html`<h3 class="level6">${inner}</h3>`,
  ul: (_, inner) => html`<ul>${inner}</ul>`,
  ol: ({ start }, inner) => html`<ol start=${start ?? 1}>${inner}</ol>`,
  li: (_, inner) => html`<li>${inner}</li>`,
  task: ({ checked }) => html`<span role="img" aria-label=${checked ? "done" : "open"}>${checked ? "☑ " : "☐ "}</span>`,
  blockquote: (_, inner) => html`<blockquote>${inner}</blockquote>`,
  pre: (_, inner) => html`<pre tabindex="0">${inner}</pre>`,
  code: (_, inner) => html`<code>${inner}</code>`,
  hr: () => html`<hr>`,
  br: () => html`<br>`,
  strong: (_, inner) => html`<strong>${inner}</strong>`,
  em: (_, inner) => html`<em>${inner}</em>`,
  del: (_, inner) => html`<del>${inner}</del>`,
  a: ({ href }, inner) => html`<a href=${href ?? ""} target="_blank" rel="noopener noreferrer">${inner}</a>`,
  table: (_, inner) => html`<div class="table" tabindex="0" role="group" aria-label="Table"><table><tbody>${inner}</tbody></table></div>`,
  tr: (_, inner) => html`<tr>${inner}</tr>`,
  th: ({ align }, inner) => html`<th scope="col" class=${align ?? "start"}>${inner}</th>`,
  td: ({ align }, inner) => html`<td class=${align ?? "start"}>${inner}</td>`,
  plain: (_, inner) => html`<pre class="plain" tabindex="0">${inner}</pre>`,
};
