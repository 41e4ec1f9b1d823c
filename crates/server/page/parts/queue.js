// What waits in the chosen agent's mailbox, and what is on its way there.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { micros } from "../fold.js";
import { clean, figures, sign, waits } from "../words.js";
import { edited, sooner, withdraw } from "../deeds.js";
import { fits, newline } from "./composer.js";
import { sender } from "./talk.js";

/** @import {Page, Message} from "../page.js" */

/** So many are listed; the mailbox may hold a thousand. */
const SHOWN = 20;

/** @param {Page} page */
export function queue(page) {
  const all = page.chosen?.queue ?? [];
  const told = new Set(all.map((/** @type {any} */ message) => message.id));
  const sending = (page.sending.get(page.agent) ?? []).filter(({ id }) => !told.has(id));
  if (all.length + sending.length === 0 && page.editing === null) return nothing;
  const more = all.length - SHOWN;
  return html`<section class="queue" aria-label="Queued messages">
    <ul>
      ${repeat(all.slice(0, SHOWN), (/** @type {any} */ message) => `${message.from} ${message.id}`, (message) => one(page, message))}
      ${repeat(sending, ({ id }) => id, (message) => unsent(page, message))}
      ${page.editing && !told.has(page.editing.id) ? edit(page) : nothing}
    </ul>
    ${more > 0 ? html`<p class="quiet">and ${more} more</p>` : nothing}
  </section>`;
}

/**
 * @param {Page} page
 * @param {any} message
 */
function one(page, message) {
  if (page.editing?.id === message.id) return edit(page);
  const isOurs = message.from === "user" && page.isLive;
  const canHurry = message.urgency !== "urgent";
  return html`<li>
    <span class="text"><b class="from">${sender(message.from)}</b> ${clean(message.text)}</span>
    <span class="receipt">${page.chosen ? waits(message.urgency, page.chosen) : sign(message.urgency)} · ${waited(page, message)}</span>
    ${isOurs
      ? html`<span class="acts">
          <button class="small" @click=${() => begin(page, message)}>Edit</button>
          ${canHurry ? html`<button class="small" @click=${() => sooner(page, message)}>Sooner</button>` : nothing}
          <button class="small" @click=${() => withdraw(page, message)}>Withdraw</button>
        </span>`
      : nothing}
  </li>`;
}

/**
 * How long it has waited.
 * @param {Page} page
 * @param {any} message
 */
function waited(page, { since }) {
  return figures.clock(micros(Math.max(0, (page.watched?.now ?? since) - since)));
}

/**
 * What is on its way, or was not accepted.
 * @param {Page} page
 * @param {Message} message
 */
function unsent(page, message) {
  const { id, text, failed } = message;
  const agent = page.agent;
  if (!failed) return html`<li><span class="text">${clean(text)}</span> <span class="receipt">Sending …</span></li>`;
  return html`<li>
    <span class="text">${clean(text)}</span> <span class="receipt bad">Not sent. ${failed}</span>
    <span class="acts">
      <button class="small" @click=${() => page.sendMessage(agent, message)}>Send again</button>
      <button class="small" @click=${() => page.forget(agent, id)}>Discard</button>
    </span>
  </li>`;
}

/**
 * @param {Page} page
 * @param {any} message
 */
function begin(page, message) {
  page.editing = { id: message.id, agent: page.agent, text: message.text };
  page.draw();
  requestAnimationFrame(() => document.getElementById("edit")?.focus());
}

/** @param {Page} page */
function edit(page) {
  const { editing } = page;
  if (!editing) return nothing;
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (event.isComposing || event.keyCode === 229) return;
    if (!page.keys.is("send", event)) return newline(page, event);
    event.preventDefault();
    edited(page);
    page.focusComposer();
  };
  return html`<li class="editing">
    <textarea id="edit" rows="2" aria-label="Edit the queued message" .value=${editing.text} @keydown=${key}
      @beforeinput=${(/** @type {InputEvent} */ event) => fits(page, event)}
      @input=${(/** @type {any} */ event) => (editing.text = event.target.value)}></textarea>
    <span class="acts">
      <button class="small" @click=${() => edited(page)}>Save</button>
      <button class="small" @click=${() => leave(page)}>Leave as it is</button>
    </span>
  </li>`;
}

/** @param {Page} page */
export function leave(page) {
  page.editing = null;
  page.draw();
  page.focusComposer();
}
