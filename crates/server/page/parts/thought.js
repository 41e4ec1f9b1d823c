// Thinking: under way, or how it ended.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { clean } from "../words.js";
import { THOUGHT_MAX } from "../folded.js";
import { badge } from "./talk.js";

/** @import {Note} from "../folded.js" */

/**
 * A block of a reply that is not whole yet. Once it speaks it has thought.
 * @param {string} text
 * @param {boolean} isOver
 */
export function thinking(text, isOver) {
  const status = isOver ? "completed" : "active";
  return html`<details class="thinking ${status}" data-status=${status}>
    <summary>${isOver ? "Thought" : "Thinking …"}</summary>
    <div class="text">${clean(text.slice(-THOUGHT_MAX))}</div>
  </details>`;
}

/** A block of thinking that has ended, and a reply that was cut before it said a word. @param {Note} note */
export function thought(note) {
  const state = note.states.at(-1);
  return html`${state ? block(note, state) : nothing}${note.blank && note.reason ? html`<div>${badge(note.reason)}</div>` : nothing}`;
}

/**
 * @param {Note} note
 * @param {string} state
 */
function block({ text, reason }, state) {
  const head = html`<span class="mark">${words(state, reason)}</span>`;
  if (text.trim() === "") return html`<p class="thinking ${state}" data-status=${state}>${head}</p>`;
  return html`<details class="thinking ${state}" data-status=${state}>
    <summary>${head}</summary>
    <div class="text">${clean(text)}</div>
  </details>`;
}

/**
 * @param {string} state
 * @param {string} [reason]
 */
function words(state, reason) {
  switch (state) {
    case "completed":
      return "Thought";
    case "interrupted":
      return reason === "user_cancelled" ? "Stopped by you" : "Stopped";
    case "cancelled":
      return "Cancelled";
    default:
      return "Error";
  }
}
