// What a person's choices ask of the server, and its answers in words.

import { Refused } from "./api.js";
import { bytes } from "./fold/text.js";
import { figures, refusal } from "./words.js";

/** @import {Mode} from "./page.js" */

/** What each mode asks of the server; none is the receiver's default. */
export const URGENCY = { soft: undefined, sooner: "next_boundary", now: "urgent", later: "follow_up", instead: undefined };

/**
 * @param {string | null} name
 * @returns {Mode}
 */
export function modeOf(name) {
  return name !== null && name in URGENCY ? /** @type {Mode} */ (name) : "soft";
}

/** An id for a message that has none yet. */
export function newId() {
  return `page-${crypto.randomUUID()}`;
}

/** A message has at most so many bytes (semantics.md, section 4). */
const TEXT_MAX = 256 << 10;

/**
 * Why a text is more than a message may have, and what to do.
 * @param {string} text
 */
export function tooLong(text) {
  // No character has more than three bytes for each of its units.
  if (3 * text.length <= TEXT_MAX) return undefined;
  const size = bytes(text);
  if (size <= TEXT_MAX) return undefined;
  return `Too long: that makes ${figures.bytes(size)}, and a message has at most ${figures.bytes(TEXT_MAX)}. Shorten it, or name a file that says it`;
}

/** One level sooner. */
export const SOONER = new Map([["follow_up", "after_tools"], ["after_tools", "next_boundary"], ["next_boundary", "urgent"]]);

/**
 * Why something was not done, and what to do.
 * @param {unknown} error
 */
export function why(error) {
  if (!(error instanceof Refused)) return "The server did not answer: nothing is lost here, try again";
  const words = refusal(error.code, error.detail);
  if (error.retryAfter === undefined) return words;
  const until = new Date(Date.now() + error.retryAfter * 1000).toLocaleTimeString();
  return `${words} (after ${until})`;
}

/** @param {{result: string, files?: string[], reason?: string}} merged */
export function mergeWords({ result, files = [], reason }) {
  if (result === "merged") return "Merged";
  if (result === "up_to_date") return "There was nothing to merge";
  if (result === "conflicts") return `Not merged: conflicts in ${files.join(", ")}`;
  return `Not merged${reason ? `: ${reason}` : ""}`;
}
