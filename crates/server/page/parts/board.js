// The board: who is there, by need.

import { html } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { micros } from "../fold.js";
import { figures } from "../words.js";
import { rows } from "../roster.js";
import { counts } from "./head.js";
import { openDialog } from "../deeds.js";

/** @import {Page} from "../page.js" */
/** @import {Row} from "../roster.js" */

/** @param {Page} page */
export function board(page) {
  const all = rows(page);
  return html`<nav id="board" class="board" aria-label="Agents" ?data-open=${page.isDrawerOpen}>
    <p class="counts narrow">${counts(page)}</p>
    <ul>
      ${repeat(all, ({ name }) => name, (row) => one(page, row))}
    </ul>
    ${all.length === 0 ? html`<p class="quiet">No agents yet</p>` : ""}
    ${page.isLive && !page.isJoined
      ? html`<button class="plain wide" @click=${() => openDialog(page, { kind: "spawn" })}>+ Agent</button>`
      : ""}
  </nav>`;
}

/**
 * @param {Page} page
 * @param {Row} row
 */
function one(page, { name, kind, word, doing, since, queued, tokens, depth }) {
  const time = since === undefined ? "" : figures.clock(micros(Math.max(0, (page.watched?.now ?? 0) - since)));
  return html`<li>
    <button class="row ${kind}" data-depth=${Math.min(depth, 4)} aria-current=${page.agent === name ? "true" : "false"}
      @click=${() => page.choose(name)}>
      <span class="dot" role="img" aria-label=${word}></span>
      <span class="name">${name}</span>
      <span class="figures">${queued > 0 ? html`<span class="mail" title="${queued} waiting">✉ ${queued}</span>` : ""}
        <span class="time">${time}</span></span>
      <span class="doing">${doing}</span>
      <span class="tokens">${tokens > 0 ? figures.count(tokens) : ""}</span>
    </button>
  </li>`;
}
