/**
 * What people read of agents and their mail: the words of `crates/view/src/agents.rs` and `crates/view/src/mail.rs`, so
 * that the same thing is called the same everywhere; `tests/fold` holds them to that.
 */

import { isWorking, stopOf } from "./fold/agent.js";
import { between, bytes, floor, micros, spanMicros } from "./fold/text.js";
import { clean, oneLine } from "./words/clean.js";
import * as figures from "./words/figures.js";
import { decided, gist, short } from "./words/gist.js";

/** @import { Agent, Ask, Delta, InjectedEntry, OpenCall, Point, Request, ReturnReason, Urgency } from './fold/types.js' */

export { clean, figures, oneLine };
export { needLine, needs } from "./words/inbox.js";
export { visible } from "./words/clean.js";
export { asked, decided, gist, short, whole } from "./words/gist.js";

/** The tool with which an agent waits for others. */
const WAIT = "wait_agents";

/** How many bytes of what is said are looked at for its last words. */
const SAID_SEEN = 1_024;

/** So many characters of last words are shown at least, about, and twice as many at most. */
const LAST_WORDS = 20;

/** How much an agent needs a person, most first: each class with the sign before an agent's name. */
const CLASSES = { asks: "?", failed: "!", works: "*", waits: "=", idle: "-", stopped: "x", closed: "." };

/** @typedef {keyof typeof CLASSES} Class */

/**
 * What an agent does, on one line, and since when, of what goes on.
 * @typedef {{words: string, since: number | null}} Doing
 */

/**
 * What an agent is to its mail: `running`; `winding`, while its run ends; `resting`. `rest` is what it is then.
 * @typedef {{is: 'running' | 'winding' | 'resting', rest: 'idle' | 'stopped' | 'closed', restart: boolean}} Standing
 */

/**
 * The class of an agent; `asks`: it asks for a person's word.
 * @param {Agent} agent
 * @param {boolean} asks
 * @returns {Class}
 */
export function classOf(agent, asks) {
  if (agent.is_closed) return "closed";
  if (asks) return "asks";
  if (isWorking(agent)) return isWaiting(agent) ? "waits" : "works";
  if (agent.outcome === "failed" || agent.outcome === "limit") return "failed";
  return agent.outcome === "stopped" ? "stopped" : "idle";
}

/**
 * The sign before the name of an agent of this class.
 * @param {Class} of
 */
export function classSign(of) {
  return CLASSES[of];
}

/** @param {Agent} agent */
function isWaiting(agent) {
  return agent.calls.length > 0 && agent.calls.every(({ name }) => name === WAIT);
}

/**
 * What an agent does; `ask` is the oldest request that it waits for a person's word on.
 * @param {Agent} agent
 * @param {Ask | undefined} ask
 * @param {number} now
 * @returns {Doing}
 */
export function doing(agent, ask, now) {
  if (agent.is_closed) return still("closed");
  if (ask) return { words: line(`asks: ${oneLine(ask.name)}`, decided(ask.input)), since: ask.since };
  return isWorking(agent) ? working(agent, now) : resting(agent);
}

/**
 * @param {string} words
 * @returns {Doing}
 */
function still(words) {
  return { words, since: null };
}

/**
 * @param {Agent} agent
 * @param {number} now
 * @returns {Doing}
 */
function working(agent, now) {
  const stop = stopOf(agent, agent.run);
  if (stop) return { words: stop.reason === "close" ? "closes" : "stops", since: stop.at };
  if (agent.calls.length > 0) return calling(agent.calls);
  if (agent.request) return { words: replying(agent, agent.request), since: agent.request.since };
  if (agent.asks_again !== null) return still(triesAgain(between(now, agent.asks_again)));
  const setsUp = agent.said.some(({ whole }) => whole.type === "setup_output");
  return still(setsUp ? "makes its folder ready" : "works");
}

/**
 * What of its calls matters: those that work come before those that wait.
 * @param {OpenCall[]} calls
 * @returns {Doing}
 */
function calling(calls) {
  const works = calls.filter(({ name }) => name !== WAIT);
  if (works.length === 0) return waiting(calls);
  const oldest = works.reduce((first, call) => (micros(call.since) < micros(first.since) ? call : first));
  const words = line(oneLine(oldest.name), gist(oldest.input));
  return { words: works.length === 1 ? words : `${works.length} calls: ${words}`, since: oldest.since };
}

/**
 * @param {OpenCall[]} calls
 * @returns {Doing}
 */
function waiting(calls) {
  const all = calls.flatMap(({ input }) => {
    const names = /** @type {{names?: unknown} | null} */ (input)?.names;
    return Array.isArray(names) ? names : [];
  });
  const names = new Set(all.map((name) => (typeof name === "string" ? oneLine(name) : "")));
  const words = names.size === 0 ? "waits" : `waits for ${[...names].join(", ")}`;
  return { words, since: Math.min(...calls.map(({ since }) => since)) };
}

/** @param {number} left in microseconds */
function triesAgain(left) {
  if (left === 0) return "tries again";
  return left > 60e6 ? `tries again in ${figures.took(left)}` : `tries again in ${Math.ceil(left / 1e6)} s`;
}

/**
 * What it does with its model: what was said last.
 * @param {Agent} agent
 * @param {Request} request
 */
function replying(agent, request) {
  if (request.purpose === "summary") return "summarises what was said so far";
  /** @type {Delta | null} */
  let last = null;
  for (const { whole } of agent.said) {
    const isReply = whole.type !== "tool_output" && whole.type !== "setup_output";
    if (isReply && whole.n >= (last?.n ?? 0)) last = whole;
  }
  if (last?.type === "text_delta") return saysNow(last);
  if (last?.type !== "call_delta") return "thinks";
  return `writes a call of ${oneLine(last.name)} (${figures.bytes(last.bytes)})`;
}

/** What a row says of what is being said: what goes on is another delta, and a row is drawn in each frame. @type {WeakMap<Delta, string>} */
const NOW = new WeakMap();

/** @param {Delta & {text: string}} said */
function saysNow(said) {
  const known = NOW.get(said);
  if (known !== undefined) return known;
  const words = says(said.text);
  NOW.set(said, words);
  return words;
}

/**
 * The last words of what is being said, which may be long and is looked at often. They begin at a place that moves in
 * steps: a row that began elsewhere with each word could not be read.
 * @param {string} text
 */
function says(text) {
  const start = Math.max(0, Math.floor(bytes(text) / SAID_SEEN) - 1) * SAID_SEEN;
  const lines = clean(text.slice(floor(text, start)))
    .split("\n")
    .map((line) => line.trim());
  const last = [...(lines.findLast(Boolean) ?? "")];
  if (last.length === 0) return "replies";
  const leftOut = Math.max(0, Math.floor(last.length / LAST_WORDS) - 1) * LAST_WORDS;
  if (leftOut === 0) return `says: ${last.join("")}`;
  const tail = last.slice(leftOut).join("");
  return `says: … ${tail.slice(tail.indexOf(" ") + 1)}`;
}

/**
 * @param {Agent} agent
 * @returns {Doing}
 */
function resting({ outcome, text, error }) {
  const said = { finished: text, failed: error, limit: error, stopped: null };
  const more = short((outcome && said[outcome]) ?? "");
  const word = outcome ?? "idle";
  return still(more ? `${word}: ${more}` : word);
}

/**
 * @param {string} what
 * @param {string} about
 */
function line(what, about) {
  return `${what} ${about}`.trimEnd();
}

/**
 * The order in which agents are listed: by class, and in a class as they became known. A row moves only when its class
 * does, or that of another.
 */
export class Order {
  /** @type {Map<string, number>} the place of each agent that was ever told of */
  #known = new Map();
  /** @type {{name: string, class: Class}[]} from the top */
  rows = [];

  /**
   * Which agents there are now, and their classes; those that are new in the order in which they were spawned. Whether
   * a row has moved.
   * @param {Iterable<[string, Class]>} classes
   */
  told(classes) {
    const rows = Array.from(classes, ([name, of]) => ({ name, class: of }));
    for (const { name } of rows) {
      if (!this.#known.has(name)) this.#known.set(name, this.#known.size);
    }
    const need = Object.keys(CLASSES);
    const place = (/** @type {string} */ name) => this.#known.get(name) ?? 0;
    rows.sort((a, b) => need.indexOf(a.class) - need.indexOf(b.class) || place(a.name) - place(b.name));
    const moved = rows.length !== this.rows.length || rows.some(({ name }, at) => name !== this.rows[at]?.name);
    this.rows = rows;
    return moved;
  }
}

/**
 * The sign of an urgency.
 * @param {Urgency} urgency
 */
export function sign(urgency) {
  return { follow_up: "⏳", after_tools: "⏳", next_boundary: "⚡", urgent: "‼" }[urgency];
}

/**
 * An urgency in one word, for lists.
 * @param {Urgency} urgency
 */
export function level(urgency) {
  return { follow_up: "later", after_tools: "soft", next_boundary: "ASAP", urgent: "now" }[urgency];
}

/**
 * What an agent is to its mail.
 * @param {Agent} agent
 * @returns {Standing}
 */
export function standing(agent) {
  const stop = stopOf(agent, agent.run)?.reason;
  if (agent.is_closed) return { is: "resting", rest: "closed", restart: false };
  if (!isWorking(agent)) {
    return { is: "resting", rest: agent.outcome === "stopped" ? "stopped" : "idle", restart: false };
  }
  if (!stop) return { is: "running", rest: "idle", restart: false };
  return { is: "winding", rest: stop === "close" ? "closed" : "stopped", restart: stop === "supersede" };
}

/**
 * What will become of a person's message to this agent, as it stands.
 * @param {Urgency} urgency
 * @param {Agent} receiver
 */
export function promise(urgency, receiver) {
  const { is, rest } = standing(receiver);
  if (rest === "closed") return "⊘ Will come back: it is closed";
  if (is === "resting") return "→ Will wake it now";
  return is === "winding" ? "→ Will start its next run" : running(urgency, receiver);
}

/**
 * What will become of a message that waits for this agent, as it stands. One that rests was not woken by it: its run
 * failed or came to a limit, and its mail was kept.
 * @param {Urgency} urgency
 * @param {Agent} receiver
 */
export function waits(urgency, receiver) {
  const { is, rest } = standing(receiver);
  if (is === "resting" && rest !== "closed") return "⏳ Will inject when it runs again";
  return promise(urgency, receiver);
}

/**
 * @param {Urgency} urgency
 * @param {Agent} receiver
 */
function running(urgency, { request, calls }) {
  if (urgency === "follow_up" || urgency === "after_tools") return "⏳ Will inject at next safe point";
  if (urgency === "urgent" && (request || calls.length > 0)) return "‼ Will inject now (cuts what runs)";
  return "⚡ Will inject ASAP (may skip tools)";
}

/**
 * What became of messages that went in together.
 * @param {InjectedEntry} mail
 */
export function injected({ letters, point, after, skipped, interrupted, answered }) {
  const many = letters.length > 1;
  let text = many ? `✓ ${letters.length} messages injected together` : "✓ Message injected";
  if (after !== null) text += ` after ${oneLine(after)}`;
  text += ` at ${place(point)}`;
  for (const [number, what] of /** @type {const} */ ([
    [interrupted, "cut"],
    [skipped, "skipped"],
  ])) {
    if (number > 0) text += number === 1 ? `, 1 call ${what}` : `, ${number} calls ${what}`;
  }
  // Of several it is the one that waited longest.
  const waited = letters.flatMap((letter) => (letter.waited === null ? [] : spanMicros(letter.waited)));
  if (waited.length > 0) text += `, ${figures.took(Math.max(...waited))}`;
  return answered ? `${text} · answered` : text;
}

/**
 * A point as people read it behind "at".
 * @param {Point} point
 */
function place(point) {
  const places = { start: "the start of a run", stream: "the cut of a reply", wait: "the end of its wait" };
  return point in places ? places[/** @type {keyof typeof places} */ (point)] : point;
}

/**
 * Why a message will never be injected.
 * @param {ReturnReason} reason
 */
export function returned(reason) {
  return {
    closed: "⊘ Came back unread: the agent is closed",
    stopped: "⊘ Came back unread: the agent was stopped",
    expired: "⊘ Came back unread: its time was up, or its run had ended",
    withdrawn: "⊘ Taken back before it was read",
    superseded: "⊘ Never read: a newer message took its place",
    error: "⊘ Came back unread: the run failed",
  }[reason];
}

/** @type {Map<string, string>} why nothing was accepted, and what to do, for the codes that say all of it */
const REFUSALS = new Map([
  ["too_late", "Too late: it was read already. Send what has changed as a new message"],
  ["mailbox_full", "The mailbox is full: wait until the agent has read its mail, or take a message back"],
  ["urgent_rate", "Too many urgent messages within a minute: send it a level softer, or wait"],
  ["urgent_not_allowed", "Not allowed to be urgent here: send it a level softer"],
  ["unknown_agent", "There is no such agent: choose one from the list"],
  ["unknown_message", "That message is not in the mailbox any more"],
  ["empty", "There is nothing to send yet"],
  ["stale_run", "That run is over: look what the agent does now, then send it again"],
  ["duplicate_id", "Sent before, with other words: send it again"],
  ["shutting_down", "Midturn is shutting down: send it again after the next start"],
  ["store", "It could not be stored, so it was not accepted: send it again"],
  ["not_live", "This session is only stored: resume it first"],
  ["not_asked", "Nobody asks that any more: it was answered or withdrawn"],
  ["too_many_requests", "Too many requests within a second: send it again"],
  ["not_allowed", "Not allowed with this token: use a person's"],
]);

/**
 * Why nothing was accepted, and what to do: for the code of an answer and its `detail`, which is what is shown where
 * there is nothing better to say.
 * @param {string} code
 * @param {string} detail
 */
export function refusal(code, detail) {
  const said = short(detail);
  if (code === "limit") return `${said}: raise it`;
  if (code === "too_large") return `${said}: shorten it, or name a file that says it`;
  return REFUSALS.get(code) ?? (said || `Refused (${oneLine(code)}): nothing was accepted`);
}
