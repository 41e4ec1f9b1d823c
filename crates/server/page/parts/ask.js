// What an agent asks a person: all of it, and the buttons that answer it. None of them takes the focus.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { keyed } from "../vendor/lit-html/directives/keyed.js";
import { oneLine, visible, whole } from "../words.js";
import { whole as all } from "./call.js";

/** @import {Page} from "../page.js" */

/** @param {Page} page */
export function ask(page) {
  const it = page.ask;
  if (!it) return nothing;
  const more = (page.view?.asks.length ?? 1) - 1;
  const others = it.agent !== page.agent;
  const draw = html`<section class="ask ${others ? "others" : ""}" aria-label="${it.agent} asks">
    <h2><span>${it.agent} asks: ${oneLine(it.name)}${more > 0 ? html` <span class="quiet">· ${more} more ${more === 1 ? "asks" : "ask"}</span>` : nothing}</span>
      ${others ? html`<button class="small look" @click=${() => page.choose(it.agent)}>Look</button>` : nothing}</h2>
    <div class="scroll" tabindex="0" role="group" aria-label="What it asks for">${all(it.name, it.input)}
      <p class="argument"><b>“In this session” stands for</b> <span>${visible(it.always)}</span></p></div>
    ${buttons(page, it)}
  </section>`;
  return keyed(`${it.agent} ${it.tool} ${it.since}`, draw);
}

/**
 * @param {Page} page
 * @param {any} it
 */
function buttons(page, it) {
  const deny = (/** @type {any} */ event) => {
    event.preventDefault();
    page.answer(it, "denied", new FormData(event.target).get("reason")?.toString().trim());
  };
  return html`<form class="bar" @submit=${deny}>
    <button type="button" class="yes" @click=${() => page.answer(it, "once")}>Once</button>
    <button type="button" @click=${() => page.answer(it, "session")}>In this session<code>: ${whole(it.always)}</code></button>
    <input name="reason" aria-label="Why not" placeholder="Why not (the model reads it)" maxlength="16000" autocomplete="off">
    <button type="submit" class="no">No</button>
  </form>`;
}
