// The composer: typing is always possible; what the button does depends on what the agent does.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { live } from "../vendor/lit-html/directives/live.js";
import { promise } from "../words.js";
import { tooLong } from "../ways.js";
import { isWorking } from "../watched.js";

/** @import {Page, Mode} from "../page.js" */

/** @type {[Mode, string, string][]} */
export const MODES = [
  ["soft", "Soft", "The receiver's default: skips nothing of a lead's"],
  ["sooner", "Sooner", "At the next boundary: may skip tools"],
  ["now", "Now", "At once: cuts what runs"],
  ["later", "Later", "When it would otherwise finish"],
  ["instead", "Stop and send", "Ends its run and starts a new one with this"],
];

/** @param {Page} page */
export function composer(page) {
  const { agent, chosen } = page;
  const works = isWorking(chosen);
  const draft = page.drafts.of(agent).text;
  const refused = page.refused.get(agent);
  if (chosen?.is_closed) return html`<p class="composer quiet">${agent} is closed: nobody can write to it any more.</p>`;
  return html`<form class="composer ${works ? "streaming" : ""}" @submit=${(/** @type {Event} */ event) => submit(page, event)}>
    ${refused ? html`<p class="line bad refused">${refused}</p>` : nothing}
    <div class="box" @mousedown=${stays}>
      <textarea id="draft" rows="2" aria-label="Message to ${agent}" placeholder=${hint(page, works)}
        enterkeyhint=${page.keys.of("send") === "Enter" ? "send" : "enter"} autocomplete="off" .value=${live(draft)}
        @beforeinput=${(/** @type {InputEvent} */ event) => fits(page, event)}
        @input=${(/** @type {any} */ event) => page.typed(event.target.value)}
        @keydown=${(/** @type {KeyboardEvent} */ event) => key(page, event)}></textarea>
      ${buttons(page, works, draft.trim() !== "")}
    </div>
    <p class="below">
      <label><span>Mode</span> <select @change=${(/** @type {any} */ event) => page.setMode(event.target.value)}>
        ${MODES.map(([mode, name, does]) => html`<option value=${mode} title=${does} .selected=${page.mode === mode}>${name}</option>`)}
      </select></label>
      <span class="promise">${draft.trim() ? becomes(page) : html`<span class="hint">${page.keys.of("send")} sends, ${page.keys.of("newline")} is a new line</span>`}</span>
    </p>
  </form>`;
}

/**
 * @param {Page} page
 * @param {boolean} works
 */
function hint(page, works) {
  return works ? `Correct ${page.agent} while it works …` : `Message ${page.agent} …`;
}

/** What will become of the draft. @param {Page} page */
export function becomes(page) {
  const { chosen } = page;
  if (!chosen) return "";
  if (page.mode === "instead") return isWorking(chosen) ? "■ Will stop it and start anew" : "→ Will wake it now";
  const soft = chosen.role === "lead" ? "after_tools" : "next_boundary";
  const urgency = { soft, sooner: "next_boundary", now: "urgent", later: "follow_up" }[page.mode];
  return promise(/** @type {any} */ (urgency), chosen);
}

/**
 * One place for send and stop; with a draft both, so that a finger can correct an agent that works.
 * @param {Page} page
 * @param {boolean} works
 * @param {boolean} hasDraft
 */
function buttons(page, works, hasDraft) {
  const send = html`<button class="send" type="submit" aria-label="Send" title="Send" ?disabled=${!page.isLive || !hasDraft}>➤</button>`;
  const stop = html`<button class="stop" type="button" aria-label="Stop generating response" title="Stop (${page.keys.of("stop")})"
    ?disabled=${page.isStopping || !page.isLive} @click=${() => page.stop()}><span class="square"></span></button>`;
  if (!works) return send;
  return hasDraft ? html`${send}${stop}` : stop;
}

/**
 * What doesn't fit into a message is not taken, and that is said: cut in silence it would not be missed, and browsers
 * hang on long texts with many lines.
 * @param {Page} page
 * @param {InputEvent} event
 */
export function fits(page, event) {
  const { value, selectionStart, selectionEnd } = /** @type {HTMLTextAreaElement} */ (event.target);
  const added = event.data ?? event.dataTransfer?.getData("text/plain") ?? "";
  const words = tooLong(value.slice(0, selectionStart) + added + value.slice(selectionEnd));
  if (added === "" || !words) return;
  event.preventDefault();
  page.refused.set(page.agent, words);
  page.say(words);
}

/**
 * A click beside the text, on a button that has just been disabled too, leaves the focus where one types.
 * @param {Event} event
 */
function stays(event) {
  if (!(event.target instanceof HTMLTextAreaElement)) event.preventDefault();
}

/**
 * @param {Page} page
 * @param {Event} event
 */
function submit(page, event) {
  event.preventDefault();
  page.send();
  page.focusComposer();
}

/**
 * @param {Page} page
 * @param {KeyboardEvent} event
 */
function key(page, event) {
  // Enter ends a composition; it sends nothing. 229 is what some browsers say instead.
  if (event.isComposing || event.keyCode === 229) return;
  if (page.keys.is("send", event)) {
    event.preventDefault();
    page.send();
  } else newline(page, event);
}

/**
 * Begins a new line, where that has a key that does something else in a browser.
 * @param {Page} page
 * @param {KeyboardEvent} event
 */
export function newline(page, event) {
  if (!page.keys.is("newline", event) || ["Enter", "Shift+Enter"].includes(page.keys.of("newline"))) return;
  event.preventDefault();
  // The one way that a person can take back again.
  document.execCommand("insertText", false, "\n");
}
