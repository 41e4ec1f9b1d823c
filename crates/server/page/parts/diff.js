// Changes: a patch as git writes it, and two texts side by side, line by line.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { guard } from "../vendor/lit-html/directives/guard.js";
import { visible } from "../words.js";
import { loadDiff, merge } from "../deeds.js";

/** @import {Page} from "../page.js" */

/** So many lines of a patch are in the page. */
const LINES_MAX = 3000;

/** @param {Page} page */
export function diff(page) {
  const it = page.diffs.get(page.agent);
  const canMerge = page.isLive && it?.branch !== undefined && page.chosen?.role !== "lead" && it.patch !== "";
  return html`<section class="pane" aria-label="Diff">
    <p class="bar">
      <button @click=${() => loadDiff(page)} ?disabled=${it?.busy}>Look again</button>
      ${canMerge ? html`<button @click=${() => merge(page)}>Merge into the project</button>` : nothing}
      ${it?.branch ? html`<code>${visible(it.branch)}</code>` : nothing}
    </p>
    ${it?.merge ? html`<p class="line">${it.merge}</p>` : nothing}
    ${it?.error ? html`<p class="line bad">${it.error}</p>` : nothing}
    ${it?.patch === "" ? html`<p class="quiet">Nothing has changed.</p>` : nothing}
    ${it?.patch ? guard([it.patch], () => patch(it.patch ?? "")) : nothing}
    ${it?.truncated ? html`<p class="line cut">The rest is left out: it is too much for one answer.</p>` : nothing}
  </section>`;
}

/** @param {string} text */
function patch(text) {
  const lines = visible(text).trimEnd().split("\n");
  const more = lines.length - LINES_MAX;
  return html`<pre class="diff" tabindex="0">${lines.slice(0, LINES_MAX).map((line) => one(kind(line), line))}</pre>
    ${more > 0 ? html`<p class="line cut">${more} more lines: <code>midturn diff</code> has all of them.</p>` : nothing}`;
}

/** @param {string} line */
function kind(line) {
  if (/^(diff |index |--- |\+\+\+ |new file|deleted file|rename |similarity )/.test(line)) return "head";
  return line.startsWith("@@") ? "hunk" : line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
}

/**
 * @param {string} kind
 * @param {string} line
 */
function one(kind, line) {
  return html`<span class=${kind}>${line}
</span>`;
}

/**
 * What an edit changes: what both begin and end with stays, the rest goes and comes.
 * @param {string} old
 * @param {string} now
 */
export function change(old, now) {
  const [a, b] = [lines(old), lines(now)];
  if (a.length + b.length > LINES_MAX) return html`${part("removed", "-", a)}${part("added", "+", b)}`;
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1;
  return html`<pre class="diff" tabindex="0">${a.slice(0, head).map((line) => one("", `  ${line}`))}${
    a.slice(head, a.length - tail).map((line) => one("removed", `- ${line}`))}${
    b.slice(head, b.length - tail).map((line) => one("added", `+ ${line}`))}${
    a.slice(a.length - tail).map((line) => one("", `  ${line}`))}</pre>`;
}

/**
 * Many lines, all of them, in one piece: an element for each would be too much.
 * @param {string} kind
 * @param {string} sign
 * @param {string[]} lines
 */
function part(kind, sign, lines) {
  return lines.length === 0 ? nothing : html`<pre class="diff" tabindex="0"><span class=${kind}>${lines.map((line) => `${sign} ${line}`).join("\n")}</span></pre>`;
}

/** @param {string} text */
function lines(text) {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}
