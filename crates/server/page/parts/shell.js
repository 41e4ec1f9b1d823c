// The page as a whole.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { ask } from "./ask.js";
import { board } from "./board.js";
import { composer } from "./composer.js";
import { dialog } from "./dialog.js";
import { diff } from "./diff.js";
import { head, title } from "./head.js";
import { plan } from "./plan.js";
import { playing } from "./playing.js";
import { queue } from "./queue.js";
import { start } from "./start.js";
import { talk } from "./talk.js";
import { timeline } from "./timeline.js";
import { takeUp } from "../deeds.js";

/** @import {Page} from "../page.js" */

/** @param {Page} page */
export function shell(page) {
  return html`${page.phase === "watching" ? watching(page) : start(page)}${dialog(page)}`;
}

/** @param {Page} page */
function watching(page) {
  return html`<div class="page">
    ${head(page)}
    ${banner(page)}
    ${board(page)}
    <main class="agent">
      ${title(page)}
      <div id="shown" class="shown" role="tabpanel" aria-labelledby="tab-${page.tab}">${shown(page)}</div>
      ${page.isLive ? html`${ask(page)}${queue(page)}${page.agent ? composer(page) : nothing}` : playing(page)}
    </main>
  </div>`;
}

/** @param {Page} page */
function shown(page) {
  if (page.tab === "timeline") return timeline(page);
  if (page.tab === "plan") return plan(page);
  if (page.tab === "diff") return diff(page);
  const below = html`<button class="below" @click=${() => follow(page)}>New below ↓</button>`;
  return html`${talk(page)}${page.follows ? nothing : below}`;
}

/** @param {Page} page */
function follow(page) {
  page.follows = true;
  page.until.delete(page.agent);
  page.draw();
}

/** How the stream stands, where that is worth a word. @param {Page} page */
function banner(page) {
  const { watched } = page;
  if (!watched) return nothing;
  const words = standing(page, watched);
  if (words === nothing && !watched.misses) return nothing;
  const missed = html`<p>Something was too large for this page: <code>midturn log ${watched.id}</code> has it.</p>`;
  const isBad = watched.line === "offline" || watched.line === "refused";
  return html`<section class="banner ${isBad ? "bad" : ""}" aria-label="Connection">${words}${watched.misses ? missed : nothing}</section>`;
}

/**
 * @param {Page} page
 * @param {import("../watched.js").Watched} watched
 */
function standing(page, watched) {
  switch (watched.line) {
    case "connecting":
      return "Connecting …";
    case "asking":
      return "Many tabs are open: this one looks every 5 s, and shows a reply once it is whole.";
    case "offline":
      return `${watched.why}. Trying again ${inSeconds(watched.againAt)}; what you type is kept.`;
    case "stored":
      return watched.kind === "replay" ? "This is a replay of a scenario: nothing runs, and nothing can be sent." : stored(page, watched);
    case "refused":
      return watched.why;
    default:
      return nothing;
  }
}

/**
 * @param {Page} page
 * @param {import("../watched.js").Watched} watched
 */
function stored(page, watched) {
  const { playback, session } = watched;
  const resume = html`<button class="small" @click=${() => takeUp(page)}>Resume it</button>`;
  // One that was let go while one looked was followed, not held.
  const again = playback ? nothing : html`<button class="small" @click=${() => page.open(session)}>Play it back</button>`;
  return html`This session is only stored${playback?.isAmid ? ", and played back: nothing runs" : ""}. ${resume} ${again}`;
}

/** @param {number} at */
function inSeconds(at) {
  const seconds = Math.ceil((at - Date.now()) / 1000);
  return seconds > 0 ? `in ${seconds} s` : "now";
}
