/**
 * One agent as far as it was told (crates/core/src/rules/view/agent.rs): its run and what is under way in it, its mail,
 * what it used and said. The only place that decides what each kind of event does to it.
 */

import { callEnds, replyEnds } from "./said.js";
import { after } from "./text.js";

/** @import { Agent, Event, Message, ReceiptState, Stop } from './types.js' */

/** How many calls of one agent are followed at a time. */
const CALLS_MAX = 256;

/** How many messages of one mailbox are followed: more than it holds. */
const QUEUE_MAX = 4096;

/** How many messages are kept that nothing more happens to; the newest. */
const SETTLED_MAX = 64;

/** What happens only in a run that is under way: of one that is over it changes nothing. */
const OF_RUN = new Set([
  "run_started",
  "model_started",
  "model_finished",
  "model_interrupted",
  "model_retry",
  "tool_started",
  "tool_finished",
  "message_injected",
  "approval_requested",
  "approval_resolved",
  "compacted",
  "run_finished",
]);

/** What somebody else does to an agent, and what concerns the session. */
const OF_NO_RUN = new Set([
  "session_started",
  "session_resumed",
  "agent_spawned",
  "message_queued",
  "message_refused",
  "message_returned",
  "stop_requested",
  "plan_updated",
  "limit_raised",
  "agent_closed",
]);

/**
 * Whether it is an event that is known here. What a newer Midturn tells besides says nothing to this one.
 * @param {{type: string}} event
 */
export function isEvent(event) {
  return OF_RUN.has(event.type) || OF_NO_RUN.has(event.type);
}

/**
 * An agent of which nothing was told yet.
 * @returns {Agent}
 */
export function unknownAgent() {
  return {
    parent: null,
    role: null,
    model: null,
    run: 0,
    turn: 0,
    ended: 0,
    outcome: null,
    ended_at: null,
    error: null,
    text: "",
    stop: null,
    request: null,
    asks_again: null,
    calls: [],
    queue: [],
    past: [],
    usage: { input: 0, output: 0, cached: 0 },
    plan: [],
    said: [],
    is_closed: false,
  };
}

/**
 * Whether a run is under way.
 * @param {Agent} agent
 */
export function isWorking(agent) {
  return agent.run > agent.ended;
}

/**
 * Whether what belongs to this run changes nothing any more.
 * @param {Agent} agent
 * @param {number} run
 */
export function isOver(agent, run) {
  return run < agent.run || run <= agent.ended;
}

/**
 * The request to stop this run, if there was one.
 * @param {Agent} agent
 * @param {number} run
 * @returns {Stop | null}
 */
export function stopOf(agent, run) {
  return agent.stop?.run === run ? agent.stop : null;
}

/**
 * How many messages were injected and have no reply yet.
 * @param {Agent} agent
 */
export function unanswered(agent) {
  return agent.past.filter(({ state }) => !isFinal(state)).length;
}

/**
 * The next event. `false`: it is of a run that is over, and changes nothing.
 * @param {Agent} agent
 * @param {Event} event
 */
export function told(agent, event) {
  const run = event.run ?? agent.run;
  if (OF_RUN.has(event.type)) {
    if (isOver(agent, run)) return false;
    // A run that the process before this one began has no beginning here.
    if (run > agent.run || event.type === "run_started") begins(agent, run);
    agent.turn = event.turn ?? agent.turn;
  }
  changes(agent, event);
  return true;
}

/**
 * Nothing of it is under way any more.
 * @param {Agent} agent
 */
export function rests(agent) {
  Object.assign(agent, { request: null, asks_again: null, calls: [], said: [] });
}

/**
 * @param {Agent} agent
 * @param {Event} event
 */
function changes(agent, event) {
  switch (event.type) {
    case "agent_spawned":
      agent.parent = event.parent ?? null;
      agent.role = event.role;
      agent.model = event.model ?? null;
      break;
    case "model_started":
    case "model_finished":
    case "model_interrupted":
    case "model_retry":
      replies(agent, event);
      break;
    case "tool_started":
    case "tool_finished":
      calls(agent, event);
      break;
    case "message_queued":
    case "message_injected":
    case "message_returned":
      mail(agent, event);
      break;
    case "stop_requested": {
      const run = event.run ?? agent.run;
      if (!stopOf(agent, run)) agent.stop = { run, by: event.by, reason: event.reason ?? "stop", at: event.t };
      break;
    }
    case "plan_updated":
      agent.plan = event.steps;
      break;
    case "run_finished":
      rests(agent);
      Object.assign(agent, { ended: agent.run, outcome: event.outcome, ended_at: event.t, error: event.error ?? null });
      break;
    case "agent_closed":
      rests(agent);
      Object.assign(agent, { ended: agent.run, is_closed: true, queue: [] });
      break;
  }
}

/**
 * @param {Agent} agent
 * @param {number} run
 */
function begins(agent, run) {
  rests(agent);
  Object.assign(agent, { run, turn: 0, outcome: null, ended_at: null, error: null, text: "" });
  // It may have been stopped before it began.
  agent.stop = stopOf(agent, run);
}

/**
 * @param {Agent} agent
 * @param {Event} event
 */
function replies(agent, event) {
  const call = agent.request?.call ?? 0;
  Object.assign(agent, { request: null, asks_again: null, said: replyEnds(agent.said) });
  if (event.type === "model_started") {
    const { call, messages, purpose = "turn", t } = event;
    agent.request = { call, messages, purpose, since: t };
    // Whose older part is summarised is not sent its mail.
    if (purpose === "turn") isSent(agent, call);
  } else if (event.type === "model_finished") {
    for (const kind of /** @type {const} */ (["input", "output", "cached"])) {
      agent.usage[kind] += event.usage[kind] ?? 0;
    }
    // A summary answers nobody.
    if ((event.purpose ?? "turn") === "turn") {
      agent.text = event.text;
      isAnswered(agent, call);
    }
  } else if (event.type === "model_retry") {
    agent.asks_again = after(event.t, event.wait);
  }
}

/**
 * @param {Agent} agent
 * @param {Event} event
 */
function calls(agent, event) {
  if (event.type === "tool_started" && agent.calls.length < CALLS_MAX) {
    agent.calls.push({ id: event.tool, name: event.name, input: event.input, since: event.t });
  } else if (event.type === "tool_finished") {
    agent.calls = agent.calls.filter((call) => call.id !== event.tool);
    agent.said = callEnds(agent.said, event.tool);
  }
}

/**
 * @param {Agent} agent
 * @param {Event} event
 */
function mail(agent, event) {
  if (event.type === "message_queued") {
    const { message: id, from, urgency, text, t } = event;
    const isThere = agent.queue.some((known) => known.id === id && known.from === from);
    if (agent.queue.length < QUEUE_MAX && !isThere) {
      agent.queue.push({ id, from, urgency, text, since: t, state: "queued" });
    }
  } else if (event.type === "message_injected") {
    const { point, skipped, interrupted } = event;
    const injection = { point, run: agent.run, turn: agent.turn, skipped, interrupted };
    for (const id of event.messages) moves(agent, id, { injected: injection });
  } else if (event.type === "message_returned") {
    moves(agent, event.message, { returned: event.reason });
  }
}

/**
 * @param {Agent} agent
 * @param {string} id
 * @param {ReceiptState} state
 */
function moves(agent, id, state) {
  const place = agent.queue.findIndex((message) => message.id === id);
  if (place < 0) return;
  const [message] = /** @type {[Message]} */ (agent.queue.splice(place, 1));
  agent.past.push({ ...message, state });
  while (agent.past.length > SETTLED_MAX && agent.past[0] && isFinal(agent.past[0].state)) agent.past.shift();
}

/**
 * Whether nothing can follow.
 * @param {ReceiptState} state
 */
function isFinal(state) {
  return typeof state === "object" && ("answered" in state || "returned" in state);
}

/**
 * @param {Agent} agent
 * @param {number} call
 */
function isSent(agent, call) {
  for (const message of agent.past) {
    if (typeof message.state === "object" && "injected" in message.state) {
      message.state = { sent: { injection: message.state.injected, call } };
    }
  }
}

/**
 * @param {Agent} agent
 * @param {number} call
 */
function isAnswered(agent, call) {
  for (const message of agent.past) {
    if (typeof message.state !== "object") continue;
    if ("injected" in message.state) {
      message.state = { answered: { injection: message.state.injected, call } };
    } else if ("sent" in message.state) {
      message.state = { answered: { injection: message.state.sent.injection, call } };
    }
  }
}
