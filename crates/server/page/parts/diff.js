// Changes: a patch as git writes it, and two texts side by side, line by line.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { guard } from "../vendor/lit-html/directives/guard.js";
import { visible } from "../words.js";
import { loadDiff, merge } from "../deeds.js";
import { label, note } from "../notes.js";
import { placeOf } from "../patch.js";
import { below, bar, canComment, gone, remarks, stepped } from "./review.js";

/**
 * @import {Page} from "../page.js"
 * @import {Patch, Row} from "../patch.js"
 * @import {Remarks} from "./review.js"
 */

/** So many lines of a patch are in the page, each with a button: more elements would slow typing down. */
const LINES_MAX = 2000;

/** So many lines of an edit are compared. */
const COMPARED_MAX = 3000;

/** @param {Page} page */
export function diff(page) {
  const it = page.diffs.get(page.agent);
  const canMerge = page.isLive && it?.branch !== undefined && page.chosen?.role !== "lead" && it.patch !== "";
  const said = it?.read ? remarks(page, it.read, LINES_MAX) : undefined;
  return html`<section class="pane" aria-label="Diff">
    <p class="bar">
      <button @click=${() => loadDiff(page)} ?disabled=${it?.busy}>Look again</button>
      ${canMerge ? html`<button @click=${() => merge(page)}>Merge into the project</button>` : nothing}
      ${it?.branch ? html`<code>${visible(it.branch)}</code>` : nothing}
    </p>
    ${it?.merge ? html`<p class="line">${it.merge}</p>` : nothing}
    ${it?.error ? html`<p class="line bad">${it.error}</p>` : nothing}
    ${said ? html`${bar(page)}${gone(page, said, it?.truncated === true)}` : nothing}
    ${it?.patch === "" ? html`<p class="quiet">Nothing has changed.</p>` : nothing}
    ${it?.patch && it.read && said ? patch(page, it.read, said) : nothing}
    ${it?.truncated ? html`<p class="line cut">The rest is left out: it is too much for one answer.</p>` : nothing}
  </section>`;
}

/**
 * @param {Page} page
 * @param {Patch} patch
 * @param {Remarks} said
 */
function patch(page, patch, said) {
  const { rows } = patch;
  const more = rows.length + patch.left_out - LINES_MAX;
  const lines = () => rows.slice(0, LINES_MAX).map((row, at) => [line(page, row, at), below(page, said, at)]);
  const pressed = (/** @type {Event} */ event) => begin(page, rows, event);
  return html`<div class="diff lines" role="group" aria-label="Changed lines" tabindex="0" @click=${pressed} @keydown=${stepped}>${
    guard([patch, said.key, canComment(page)], lines)}</div>
    ${more > 0 ? html`<p class="line cut">${more} more lines: <code>midturn diff</code> has all of them.</p>` : nothing}`;
}

/**
 * One listener for all lines.
 * @param {Page} page
 * @param {Row[]} rows
 * @param {Event} event
 */
function begin(page, rows, { target }) {
  const button = target instanceof Element ? target.closest(".remark") : null;
  const place = placeOf(rows[Number(button?.getAttribute("data-row") ?? -1)]);
  if (place) note(page, place);
}

const SIGNS = { added: "+", removed: "-", kept: " ", file: "", text: "" };

/**
 * @param {Page} page
 * @param {Row} row
 * @param {number} at
 */
function line(page, row, at) {
  const place = canComment(page) ? placeOf(row) : undefined;
  const kind = row.kind === "file" ? "head" : row.kind === "text" && row.text.startsWith("@@") ? "hunk" : row.kind;
  const button = place
    ? html`<button class="remark" type="button" tabindex="-1" data-row=${at} aria-label=${label(place)} title=${label(place)}></button>`
    : nothing;
  return html`<div class="row ${kind}">${button}${SIGNS[row.kind]}${row.text}</div>`;
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
  if (a.length + b.length > COMPARED_MAX) return html`${part("removed", "-", a)}${part("added", "+", b)}`;
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
