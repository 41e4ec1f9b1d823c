// What is said to lines of a diff: below the line as long as it stands, above the diff once it has changed.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { live } from "../vendor/lit-html/directives/live.js";
import { clean } from "../words.js";
import { dropNote, fitsNote, label, leaveNote, note, noted, notes, sendNotes, written } from "../notes.js";
import { isBeside, readComments, sentComments, standsAt, whereabouts } from "../review.js";
import { becomes } from "./composer.js";

/**
 * What is said, and what became of it; without that it is not sent.
 * @import {Page} from "../page.js"
 * @import {Patch} from "../patch.js"
 * @import {Comment} from "../review.js"
 * @typedef {{comment: Comment, says?: string, reply?: string}} Remark
 * @typedef {{at: Map<number, Remark[]>, gone: Remark[], key: string}} Remarks `key` changes with what is drawn
 */

/** Whether something can be said to the chosen agent's diff. @param {Page} page */
export function canComment(page) {
  return page.isLive && page.chosen?.is_closed !== true;
}

/**
 * What is said to the chosen agent's diff, by the row that it stands at.
 * @param {Page} page
 * @param {Patch} patch
 * @param {number} most so many rows are drawn
 * @returns {Remarks}
 */
export function remarks(page, patch, most) {
  const entries = page.watched?.fold.conversations[page.agent]?.entries ?? [];
  const known = sentComments(page.chosen, entries);
  const sending = (page.sending.get(page.agent) ?? []).flatMap(({ text, failed }) => (failed ? [] : (readComments(text) ?? [])));
  /** @type {Remark[]} */
  const all = [...known, ...sending.map((comment) => ({ comment, says: "Sending …" })), ...notes(page).map((comment) => ({ comment }))];
  /** @type {Remarks} */
  const said = { at: new Map(), gone: [], key: JSON.stringify([all, page.noting]) };
  for (const one of all) {
    const row = standsAt(one.comment, patch);
    if (row === undefined || row >= most) said.gone.push(one);
    else said.at.set(row, [...(said.at.get(row) ?? []), one]);
  }
  return said;
}

/** Sends what is written, as the composer's mode says. @param {Page} page */
export function bar(page) {
  const count = written(notes(page)).length;
  if (count === 0 || !canComment(page)) return nothing;
  return html`<p class="bar review">
    <button class="strong" @click=${() => sendNotes(page)}>Send ${count} comment${count === 1 ? "" : "s"}</button>
    <span class="promise quiet">${becomes(page)}</span>
  </p>`;
}

/**
 * What was said to lines that are not there any more.
 * @param {Page} page
 * @param {Remarks} said
 * @param {boolean} isCut whether the diff is more than what was read of it
 */
export function gone(page, { gone }, isCut) {
  if (gone.length === 0) return nothing;
  const why = isCut ? "It has changed since, or is behind what is shown." : "The line has changed since, or is not shown any more.";
  return html`<section class="gone" aria-label="Comments on lines that have changed">
    ${gone.map((one) => html`<article>
      <p><b>${whereabouts(one.comment)}</b> <code>${one.comment.code}</code></p>
      <p class="quiet">${why}</p>
      ${remark(page, one)}
    </article>`)}
  </section>`;
}

/**
 * What stands below a row.
 * @param {Page} page
 * @param {Remarks} said
 * @param {number} row
 */
export function below(page, said, row) {
  const all = said.at.get(row);
  return all ? html`<div class="remarks">${all.map((one) => remark(page, one))}</div>` : nothing;
}

/**
 * @param {Page} page
 * @param {Remark} one
 */
function remark(page, one) {
  const { comment, says, reply } = one;
  if (says === undefined && page.noting && isBeside(page.noting, comment)) return form(page, comment);
  return html`<div class="said ${says === undefined ? "unsent" : ""}">
    <p class="text">${clean(comment.text)}</p>
    <p class="receipt">${says ?? "Not sent yet"}${reply ? html`<br>It said: ${reply}` : nothing}</p>
    ${says === undefined && canComment(page)
      ? html`<p class="acts">
          <button class="small" @click=${() => note(page, comment)}>Edit</button>
          <button class="small" @click=${() => dropNote(page, comment)}>Drop</button>
        </p>`
      : nothing}
  </div>`;
}

/**
 * @param {Page} page
 * @param {Comment} comment
 */
function form(page, comment) {
  const key = (/** @type {KeyboardEvent} */ event) => {
    event.stopPropagation();
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key !== "Escape" && (event.key !== "Enter" || event.shiftKey)) return;
    event.preventDefault();
    leaveNote(page);
  };
  return html`<div class="said unsent">
    <textarea id="note" rows="2" aria-label=${label(comment)} placeholder="What is to be different here?" .value=${live(comment.text)} @keydown=${key}
      @beforeinput=${(/** @type {InputEvent} */ event) => fitsNote(page, event)}
      @input=${(/** @type {any} */ event) => noted(page, comment, event.target.value)}></textarea>
    <p class="acts">
      <button class="small" @click=${() => leaveNote(page)}>Keep</button>
      <button class="small" @click=${() => dropNote(page, comment)}>Drop</button>
    </p>
  </div>`;
}

/**
 * The arrows go from line to line, and Tab past all of them.
 * @param {KeyboardEvent} event
 */
export function stepped(event) {
  const { key, target, currentTarget } = event;
  const step = key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0;
  if (step === 0 || !(currentTarget instanceof Element) || !(target instanceof Element) || target.matches("textarea")) return;
  const all = [...currentTarget.querySelectorAll(".remark")];
  const next = all[target.matches(".remark") ? all.indexOf(target) + step : 0];
  if (!(next instanceof HTMLElement)) return;
  event.preventDefault();
  next.focus();
}
