// The chosen agent's plan.

import { html } from "../vendor/lit-html/lit-html.js";
import { clean, oneLine } from "../words.js";

/** @import {Page} from "../page.js" */

const SIGNS = new Map([["completed", "✓"], ["in_progress", "▸"], ["pending", "·"], ["skipped", "–"]]);
const WORDS = new Map([["completed", "completed"], ["in_progress", "under way"], ["pending", "to do"], ["skipped", "skipped"]]);

/** @param {Page} page */
export function plan(page) {
  const steps = stepsOf(page);
  return html`<section class="pane" aria-label="Plan">
    ${steps.length === 0 ? html`<p class="quiet">It has no plan.</p>` : ""}
    <ol class="plan">
      ${steps.map(({ text, status }) => html`<li class=${WORDS.has(status) ? status : "pending"}>
        <span class="mark" role="img" aria-label=${word(status)}>${SIGNS.get(status) ?? "?"}</span>
        <span>${clean(text)}</span> <span class="quiet">${word(status)}</span>
      </li>`)}
    </ol>
  </section>`;
}

/** @param {string} status */
function word(status) {
  return WORDS.get(status) ?? oneLine(status);
}

/**
 * @param {Page} page
 * @returns {{text: string, status: string}[]}
 */
function stepsOf(page) {
  return page.chosen?.plan ?? page.watched?.listed.get(page.agent)?.plan ?? [];
}
