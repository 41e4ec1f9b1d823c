// What waits for the person, the newest first.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { micros } from "../fold.js";
import { figures, needLine } from "../words.js";
import { canTell } from "../inbox.js";
import { openDialog } from "../deeds.js";

/** @import {Page} from "../page.js" */
/** @import {Need} from "../words/inbox.js" */

/** The mark of each, as on the board, and what it is called where that can't be seen. */
const MARKS = /** @type {Record<Need["what"], [string, string]>} */ ({
  asks: ["asks", "asks you"],
  ended: ["idle", "has ended"],
  failed: ["failed", "failed"],
  limit: ["failed", "is at a limit"],
  conflict: ["failed", "conflicts"],
});

/** The button in the head, with how many wait. @param {Page} page */
export function inboxButton(page) {
  const count = page.inbox.needs.length;
  const says = count === 0 ? "Nothing waits for you" : `${count === 1 ? "1 waits" : `${count} wait`} for you`;
  return html`<button class="plain inbox" title=${says} aria-haspopup="dialog"
    @click=${() => openDialog(page, { kind: "inbox" })}><span aria-hidden="true">⚑</span> <span class="word">Inbox</span> ${count > 0 ? html`<b class="asks-mark">${count}</b>` : html`<span class="quiet">0</span>`}</button>`;
}

/** @param {Page} page */
export function inbox(page) {
  const all = page.inbox.needs;
  return html`${all.length === 0 ? html`<p class="quiet">Nothing waits for you.</p>` : nothing}
    <ul class="sessions inbox-list">${repeat(all, ({ id }) => id, (need) => one(page, need))}</ul>
    ${canTell() ? telling(page) : nothing}`;
}

/**
 * @param {Page} page
 * @param {Need} need
 */
function one(page, need) {
  const [kind, word] = MARKS[need.what];
  const age = need.since === null ? "" : figures.clock(micros(Math.max(0, (page.watched?.now ?? 0) - need.since)));
  return html`<li><button class="row ${kind}" @click=${() => page.inbox.go(need)}>
    <span class="dot" role="img" aria-label=${word}></span>
    <span class="what">${needLine(need)}</span>
    <span class="time quiet">${age}</span>
  </button></li>`;
}

/** Off until it is asked for. @param {Page} page */
function telling(page) {
  if (page.inbox.isOn) {
    return html`<p class="bar"><span class="quiet">The browser tells you when you don't look.</span>
      <button @click=${() => page.inbox.turnOff()}>Don't tell me</button></p>`;
  }
  const isDenied = Notification.permission === "denied";
  return html`<p class="bar">${isDenied
    ? html`<span class="quiet">The browser doesn't allow notifications here: its settings for this address do.</span>`
    : html`<button @click=${() => void page.inbox.turnOn()}>Tell me when I don't look</button>`}</p>`;
}
