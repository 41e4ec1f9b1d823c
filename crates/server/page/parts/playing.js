// What is over is played back: where one is in it, and what moves it.

import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";
import { live } from "../vendor/lit-html/directives/live.js";
import { back, goesToWritten, played, speeds, steps, toggles } from "../playback.js";
import { queue } from "./queue.js";

/** @import { Page } from "../page.js" */
/** @import { Player } from "../player.js" */

/** @type {Record<"play" | "pause" | "back" | "step", string>} */
const SIGNS = { play: "M4 2v12l10 -6z", pause: "M4 2h3v12h-3zM9 2h3v12h-3z", back: "M12 2v12l-8 -6zM3 2h1v12h-1z", step: "M4 2v12l8 -6zM12 2h1v12h-1z" };

/** Below what is shown of a session that is over, or of a scenario. @param {Page} page */
export function playing(page) {
  const playback = page.watched?.playback;
  if (!playback || !page.watched?.caughtUp) return nothing;
  if (!playback.player.isWhole) return html`<p class="playing quiet">There is too much of it to be played back: more than 20,000 events.</p>`;
  const player = played(page);
  return player ? html`${queue(page)}${controls(page, player)}` : nothing;
}

/**
 * @param {Page} page
 * @param {Player} player
 */
function controls(page, player) {
  return html`<section class="playing" aria-label="Playing back">
    <div class="way">
      ${button("One event back", "One event back (←)", "back", () => back(page))}
      ${button(player.plays ? "Pause" : "Play", player.plays ? "Pause (Space)" : "Play (Space)", player.plays ? "pause" : "play", () => toggles(page))}
      ${button("One event on", "One event on (→)", "step", () => steps(page))}
      <input type="range" aria-label="Moment" min="0" max=${player.events.length} step="1" .value=${live(String(player.shown))}
        aria-valuetext=${player.moment} @input=${(/** @type {any} */ event) => slides(page, player, event.target.value)}>
      <span class="moment" aria-hidden="true">${player.moment}</span>
    </div>
    <div class="bar">
      <span class="speed" role="group" aria-label="Speed">
        <button class="small" aria-label="Slower" title="Slower (-)" @click=${() => speeds(page, false)}>−</button>
        <span>${player.speed}</span>
        <button class="small" aria-label="Faster" title="Faster (+)" @click=${() => speeds(page, true)}>+</button>
      </span>
      <form class="to" @submit=${(/** @type {Event} */ event) => goes(page, event)}>
        <label for="to"><span class="hint">Go to</span></label>
        <input id="to" aria-label="Go to a moment" placeholder="2.5s, 2m, 1:04" size="11" autocomplete="off" autocapitalize="off" spellcheck="false">
        <button class="small" type="submit">Go</button>
      </form>
    </div>
  </section>`;
}

/**
 * @param {string} name
 * @param {string} title
 * @param {keyof typeof SIGNS} sign
 * @param {() => void} does
 */
function button(name, title, sign, does) {
  return html`<button aria-label=${name} title=${title} @click=${does}>
    <svg width="16" height="16" aria-hidden="true">${svg`<path d=${SIGNS[sign]}></path>`}</svg></button>`;
}

/**
 * A slider says itself where it is.
 * @param {Page} page
 * @param {Player} player
 * @param {string} value
 */
function slides(page, player, value) {
  player.toStep(Number(value));
  page.draw();
}

/**
 * @param {Page} page
 * @param {Event} event
 */
function goes(page, event) {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.target);
  const field = form.querySelector("input");
  const isMoment = field !== null && goesToWritten(page, field.value);
  field?.setAttribute("aria-invalid", String(!isMoment));
  field?.setCustomValidity("");
  if (isMoment) form.reset();
}
