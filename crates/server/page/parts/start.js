// What there is to see before a session is watched.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { oneLine } from "../words.js";
import { openDialog } from "../deeds.js";

/** @import {Page} from "../page.js" */

/** @param {Page} page */
export function start(page) {
  return html`<main class="alone"><h1>Midturn</h1>${inner(page)}</main>`;
}

/** @param {Page} page */
function inner(page) {
  if (page.phase === "signing_in") return html`<p>Signing in …</p>`;
  if (page.phase === "signed_out") return signedOut(page);
  return html`${page.why ? html`<p class="line bad">${page.why}</p>` : nothing}
    ${page.sessions.length > 0 ? sessions(page, page.sessions) : html`<p>No session yet.</p>`}
    <p class="bar"><button @click=${() => openDialog(page, { kind: "begin" })}>Begin a session</button></p>`;
}

/** @param {Page} page */
function signedOut(page) {
  return html`${page.why ? html`<p class="line bad">${page.why}</p>` : nothing}
    <p>This page needs a link of its own. In a terminal:</p>
    <pre>midturn open</pre>
    <p class="quiet">A link is good once, and for a minute. What you had typed is kept.</p>`;
}

/**
 * @param {Page} page
 * @param {any[]} all
 */
export function sessions(page, all) {
  return html`<ul class="sessions">
    ${all.slice(0, 200).map((session) => html`<li>
      <button class="row" aria-current=${page.watched?.id === session.session ? "true" : "false"} @click=${() => page.open(session)}>
        <b>${oneLine(session.title).slice(0, 200) || "(no task)"}</b>
        <span class="quiet">${session.live ? (session.busy ? "works" : "rests") : "stored"} · ${session.agents === 1 ? "1 agent" : `${session.agents} agents`}
          · ${new Date(session.began_at * 1000).toLocaleString()}</span>
      </button></li>`)}
  </ul>`;
}
