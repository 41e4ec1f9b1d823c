// What has just happened, said once to whoever can't see the page: never tokens, and of agents that nobody
// looks at only what needs a person.

import { injected, oneLine } from "./words.js";

/**
 * @param {any} event
 * @param {string} chosen the agent that is looked at
 * @returns {string | undefined}
 */
export function told(event, chosen) {
  const name = event.agent ?? "";
  if (event.type === "approval_requested") return `${name} asks: ${oneLine(event.name)}`;
  if (event.type === "run_finished" && (event.outcome === "failed" || event.outcome === "limit")) {
    return `${name}: ${event.outcome}${event.error ? `: ${oneLine(event.error)}` : ""}`;
  }
  if (name !== chosen) return undefined;
  switch (event.type) {
    case "run_finished":
      return event.outcome === "finished" ? "Response complete" : "Generation stopped";
    case "message_injected":
      return mail(event);
    case "message_returned":
      // What one took back oneself was said by then.
      return ["withdrawn", "superseded"].includes(event.reason) ? undefined : "A message came back unread";
    default:
      return undefined;
  }
}

/** @param {any} event */
function mail({ messages, point, skipped, interrupted }) {
  const letters = messages.map((/** @type {string} */ id) => ({ id, from: "", urgency: null, text: "", waited: null }));
  return injected({ type: "injected", letters, point, after: null, skipped: skipped.length, interrupted: interrupted.length, answered: false });
}
