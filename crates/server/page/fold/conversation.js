/**
 * An agent's conversation, bounded (crates/view/src/fold/conversation.rs): the newest entries are kept, the older ones
 * are counted.
 */

import { between, bytes, isBlank, written } from "./text.js";

/**
 * @import { Agent, CallEntry, CallRef, CallState, Entry, EntryKind, Event, InjectedEntry, Letter, Message } from './types.js'
 * @import { ToolFinished, ToolStarted } from './types.js'
 */

/** How many entries are kept. */
const ENTRIES_MAX = 2_000;

/** How many bytes of their texts. */
const BYTES_MAX = 2 * 1024 * 1024;

/** What a value weighs that holds nothing, about. */
const VALUE = 32;

/** What an agent and those who spoke with it have said, in order. */
export class Conversation {
  /** @type {Entry[]} those that are kept; the number of the first one is `dropped` */
  entries = [];
  /** How many older ones there were. */
  dropped = 0;
  /** What the entries weigh. */
  bytes = 0;

  /**
   * The entry of that number, which never changes.
   * @param {number} number
   * @returns {Entry | undefined}
   */
  entry(number) {
    return this.entries[number - this.dropped];
  }

  /**
   * An event of its agent, which is `agent` since.
   * @param {Event} event
   * @param {Agent} agent
   */
  told(event, agent) {
    switch (event.type) {
      case "model_finished":
        if ((event.purpose ?? "turn") === "turn") this.#replied(event, event.text, event.tools);
        break;
      case "tool_started":
        this.#begins(event, event);
        break;
      case "tool_finished":
        this.#ends(event, event);
        break;
      case "approval_resolved": {
        const { tool, decision, by, reason } = event;
        this.#change(event, tool, (call) => (call.word = [decision, by, reason ?? null]));
        break;
      }
      case "message_injected":
        this.#add(event, this.#injected(event, agent));
        break;
      case "model_retry":
        this.#retries(event, { type: "retry", attempt: event.attempt, error: event.error, wait: event.wait });
        break;
      default: {
        const kind = simple(event, agent);
        if (kind) this.#add(event, kind);
      }
    }
  }

  /**
   * @param {Event} event
   * @param {string} text
   * @param {CallRef[]} tools
   */
  #replied(event, text, tools) {
    if (!isBlank(text)) this.#add(event, { type: "reply", text, cut: null });
    for (const { id, name, input } of tools) this.#add(event, waiting(id, name, input ?? null));
    this.#answered(event);
  }

  /**
   * What came in before a whole reply is answered by it.
   * @param {Event} event
   */
  #answered(event) {
    for (const entry of this.#newestFirst()) {
      if (entry.kind.type !== "injected") continue;
      if (entry.kind.answered) return;
      entry.kind.answered = true;
      entry.changed = event.seq;
    }
  }

  /**
   * @param {Event} event
   * @param {ToolStarted} started
   */
  #begins(event, { tool, name, input }) {
    /** @type {CallState} */
    const state = { type: "running", since: event.t };
    const begins = (/** @type {CallEntry} */ call) => Object.assign(call, { input, state });
    if (!this.#change(event, tool, begins)) this.#add(event, begins(waiting(tool, name, input)));
  }

  /**
   * @param {Event} event
   * @param {ToolFinished} finished
   */
  #ends(event, { tool, name, status, bytes, output }) {
    const ends = (/** @type {CallEntry} */ call) => {
      const took = call.state.type === "running" ? written(between(call.state.since, event.t)) : null;
      call.state = { type: "ended", status, took, bytes, output };
      return call;
    };
    if (!this.#change(event, tool, ends)) this.#add(event, ends(waiting(tool, name, null)));
  }

  /**
   * Changes the last call of that id that has not ended. `false`: there is none.
   * @param {Event} event
   * @param {string} id
   * @param {(call: CallEntry) => void} change
   */
  #change(event, id, change) {
    for (const entry of this.#newestFirst()) {
      const { kind } = entry;
      if (kind.type !== "call") continue;
      // Calls end in their run, and of the run before none is open.
      if (entry.run < (event.run ?? entry.run)) return false;
      if (kind.id !== id || kind.state.type === "ended") continue;
      const before = weight(kind);
      change(kind);
      entry.changed = event.seq;
      this.bytes += weight(kind) - before;
      this.#forget();
      return true;
    }
    return false;
  }

  /**
   * @param {Event & {type: 'message_injected'}} event
   * @param {Agent} agent
   * @returns {InjectedEntry}
   */
  #injected(event, agent) {
    return {
      type: "injected",
      letters: letters(event.messages, event.text, agent, event.t),
      point: event.point,
      after: this.#lastTool(event),
      skipped: event.skipped.length,
      interrupted: event.interrupted.length,
      answered: false,
    };
  }

  /**
   * The tool that had the last word in this turn.
   * @param {Event} event
   */
  #lastTool(event) {
    for (const { run, turn, kind } of this.#newestFirst()) {
      if (kind.type !== "call") continue;
      if (run !== event.run || turn !== event.turn) return null;
      if (kind.state.type === "ended" && kind.state.took !== null) return kind.name;
    }
    return null;
  }

  /**
   * @param {Event} event
   * @param {EntryKind} kind
   */
  #retries(event, kind) {
    const last = this.entries.at(-1);
    if (last?.kind.type !== "retry" || last.turn !== event.turn) return this.#add(event, kind);
    this.bytes += weight(kind) - weight(last.kind);
    Object.assign(last, { kind, changed: event.seq, t: event.t });
  }

  /**
   * @param {Event} event
   * @param {EntryKind} kind
   */
  #add({ seq, t, run = 0, turn = 0 }, kind) {
    this.bytes += weight(kind);
    this.entries.push({ seq, changed: seq, t, run, turn, kind });
    this.#forget();
  }

  /** Forgets the oldest of what is too much, but never the newest. */
  #forget() {
    while (this.entries.length > ENTRIES_MAX || (this.bytes > BYTES_MAX && this.entries.length > 1)) {
      const oldest = /** @type {Entry} */ (this.entries.shift());
      this.bytes -= weight(oldest.kind);
      this.dropped += 1;
    }
  }

  *#newestFirst() {
    for (let at = this.entries.length - 1; at >= 0; at--) yield /** @type {Entry} */ (this.entries[at]);
  }
}

/**
 * What an event that changes nothing that was there adds.
 * @param {Event} event
 * @param {Agent} agent
 * @returns {EntryKind | null}
 */
function simple(event, agent) {
  switch (event.type) {
    case "agent_spawned":
      return event.prompt == null ? null : { type: "prompt", text: event.prompt };
    case "model_interrupted":
      return isBlank(event.text) ? null : { type: "reply", text: event.text, cut: event.reason };
    case "message_returned": {
      const known = agent.past.at(-1);
      if (known?.id !== event.message) return null;
      return { type: "returned", letter: letter(known, event.t), reason: event.reason };
    }
    case "stop_requested":
      return { type: "stop", by: event.by, reason: event.reason ?? "stop" };
    case "limit_raised":
      return { type: "limit", by: event.by, limits: event.limits };
    case "compacted":
      return { type: "compacted", messages: event.messages, tokens: event.tokens };
    case "run_finished":
      return { type: "end", outcome: event.outcome, error: event.error ?? null, turns: event.turns };
    case "agent_closed":
      return { type: "closed" };
    default:
      return null;
  }
}

/**
 * @param {string} id
 * @param {string} name
 * @param {unknown} input
 * @returns {CallEntry}
 */
function waiting(id, name, input) {
  return { type: "call", id, name, input, state: { type: "waiting" }, word: null };
}

/**
 * The messages of these ids, which have just left the mailbox in this order. Ids are unique per sender only, so a
 * message is known by its place as well.
 * @param {string[]} ids
 * @param {string} text
 * @param {Agent} agent
 * @param {number} now
 * @returns {Letter[]}
 */
function letters(ids, text, agent, now) {
  let left = agent.past.length;
  const known = ids.toReversed().map((id) => {
    const message = agent.past[left - 1];
    if (message?.id !== id) return null;
    left -= 1;
    return letter(message, now);
  });
  // Of mail that nothing was told of there is the text of all of it together: the first has it.
  const nothing = known.every((one) => one === null);
  return known.reverse().map((one, place) => one ?? unknown(ids[place] ?? "", nothing && place === 0 ? text : ""));
}

/**
 * @param {Message} message
 * @param {number} now
 * @returns {Letter}
 */
function letter({ id, from, urgency, text, since }, now) {
  return { id, from, urgency, text, waited: since === null ? null : written(between(since, now)) };
}

/**
 * A message that nothing was told of.
 * @param {string} id
 * @param {string} text
 * @returns {Letter}
 */
function unknown(id, text) {
  return { id, from: "", urgency: null, text, waited: null };
}

/**
 * How many bytes of text an entry holds, about: what the bound counts.
 * @param {EntryKind} kind
 */
function weight(kind) {
  switch (kind.type) {
    case "prompt":
    case "reply":
      return bytes(kind.text);
    case "call": {
      const output = kind.state.type === "ended" ? bytes(kind.state.output) : 0;
      return bytes(kind.name) + size(kind.input) + output + bytes(kind.word?.[2] ?? "");
    }
    case "injected":
      return kind.letters.reduce((sum, { text }) => sum + bytes(text), 0);
    case "returned":
      return bytes(kind.letter.text);
    case "retry":
    case "end":
      return bytes(kind.error ?? "");
    default:
      return 0;
  }
}

/**
 * How many bytes a value has, about.
 * @param {unknown} value
 * @returns {number}
 */
function size(value) {
  if (typeof value === "string") return VALUE + bytes(value);
  if (Array.isArray(value)) return value.reduce((sum, one) => sum + size(one), VALUE);
  if (typeof value !== "object" || value === null) return VALUE;
  return Object.entries(value).reduce((sum, [name, one]) => sum + bytes(name) + size(one), VALUE);
}
