// What was told of a session, folded; and what the page keeps beside the fold.

import { Session } from "./fold.js";

/** So many notes of one agent are kept, and with what was thought so many, the newest. */
const NOTES_MAX = 200;
const THOUGHTS_MAX = 20;

/** So much of one thinking block is kept and shown, in characters; the newest. */
export const THOUGHT_MAX = 16 << 10;

/**
 * What the fold has no entry for: how thinking ended, and a reply that was cut before it said a word.
 * @typedef {{seq: number, run: number, text: string, states: string[], reason?: string, blank: boolean}} Note
 */

export class Folded {
  fold = new Session();
  /** @type {Map<string, Note[]>} */
  notes = new Map();

  /**
   * The next event. `false`: it changes nothing.
   * @param {any} event
   */
  tells(event) {
    const thought = this.#thought(event);
    if (!this.fold.told(event)) return false;
    if (event.type === "model_finished" || event.type === "model_interrupted") this.#note(event, thought);
    return true;
  }

  /**
   * What its agent thought until this event.
   * @param {any} event
   */
  #thought(event) {
    const piece = pieces(this.fold.view.agents[event.agent]).find(({ type }) => type === "thinking_delta");
    return piece?.text.slice(-THOUGHT_MAX) ?? "";
  }

  /**
   * @param {any} event
   * @param {string} text
   */
  #note(event, text) {
    const { seq, run = 0, agent, thinking: states = [], reason } = event;
    const blank = event.type === "model_interrupted" && String(event.text ?? "").trim() === "";
    if (states.length === 0 && !blank) return;
    const notes = this.notes.get(agent) ?? [];
    notes.push({ seq, run, text, states, reason, blank });
    if (notes.length > NOTES_MAX) notes.shift();
    const old = notes.at(-1 - THOUGHTS_MAX);
    if (old) old.text = "";
    this.notes.set(agent, notes);
  }
}

/**
 * What an agent is saying that is not recorded yet.
 * @param {any} agent
 * @returns {any[]}
 */
export function pieces(agent) {
  return agent ? agent.said.map((/** @type {any} */ piece) => piece.whole) : [];
}
