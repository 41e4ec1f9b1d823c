/**
 * When each agent did what, when a message was sent, where it went in and what it cost: the events of a session folded
 * into what a picture of them needs (crates/view/src/timeline/mod.rs). `picture.js` lays it out.
 */

import { oneLine } from "../words/clean.js";
import { gist, short } from "../words/gist.js";
import { Lane } from "./lane.js";
import { micros } from "./text.js";

/** @import { Event, InterruptReason, Halt, Outcome, Point, ReturnReason, ToolStatus, Urgency } from './types.js' */

/** How many agents have a lane. */
const LANES_MAX = 512;

/** How many bars, messages and marks are kept, of each the newest. */
const KEPT_MAX = 20_000;

/** The tool with which an agent waits for others. */
const WAIT = "wait_agents";

/** A place among the events: twice the number of the event, one more just behind it; and when, in microseconds. */
/** @typedef {{order: number, at: number}} Moment */

/** @typedef {'model' | 'summary' | 'tool' | 'wait'} Kind */
/** @typedef {'open' | 'done' | 'failed' | 'interrupted' | 'stopped' | 'unknown' | 'skipped'} End */

/**
 * What an agent does for a while. `lane` is the number of its lane; `to` is `null` while it goes on; `hides` counts the
 * calls beside it that have no row of their own.
 * @typedef {{lane: number, row: number, kind: Kind, name: string, what: string, from: Moment, to: Moment | null, end: End,
 *   run: number, turn: number, hides: number}} Bar
 */

/**
 * What became of a message.
 * @typedef {{type: 'waits'} | {type: 'injected', at: Moment, point: Point} | {type: 'returned', at: Moment, reason: ReturnReason}
 *   | {type: 'refused', reason: string}} Ahead
 */

/** @typedef {{id: string, from: string, to: number, sent: Moment, urgency: Urgency | null, text: string, ahead: Ahead}} Letter */

/**
 * What happened at one moment.
 * @typedef {{type: 'injected', point: Point, messages: number, skipped: number, interrupted: number}
 *   | {type: 'returned', reason: ReturnReason} | {type: 'refused', reason: string} | {type: 'stop', by: string, reason: Halt}
 *   | {type: 'run_end', outcome: Outcome} | {type: 'closed'}} MarkKind
 */

/** @typedef {{lane: number, at: Moment, kind: MarkKind}} Mark */

/** @type {Record<InterruptReason, End>} how a reply that was cut ends */
const CUT = {
  message_interrupt: "interrupted",
  user_cancelled: "stopped",
  superseded: "stopped",
  stopped_by_parent: "stopped",
  shutdown: "stopped",
  limit: "stopped",
  error: "failed",
};

/** @type {Record<ToolStatus, End>} */
const ENDED = {
  completed: "done",
  failed: "failed",
  interrupted: "interrupted",
  skipped: "skipped",
  stopped: "stopped",
  unknown: "unknown",
};

/** @type {Record<string, End>} how a request for a person's word ends */
const DECIDED = { once: "done", session: "done", denied: "failed", not_answered: "unknown" };

/** What a session's picture is made from. */
export class Timeline {
  /** @type {Moment} the last event */
  now = { order: 0, at: 0 };
  /** @type {Lane[]} */
  lanes = [];
  /** @type {Map<string, number>} the place of each agent's lane */
  #places = new Map();
  /** How many agents have no lane any more. */
  beyond = 0;
  /** @type {Map<number, Bar>} by the event that began them, and so are the others; in that order */
  bars = new Map();
  /** @type {Map<number, Letter>} */
  letters = new Map();
  /** @type {Map<number, Mark>} */
  marks = new Map();
  /** @type {Moment[]} when the session was taken up again, after a crash or a shutdown */
  lives = [];
  /** How much was let go. */
  leftOut = 0;

  /**
   * The next event, one that the fold of the session took for no stale one, or of a message that was refused.
   * @param {Event} event
   */
  told(event) {
    const here = { order: event.seq * 2, at: micros(event.t) };
    const before = this.now;
    this.now = here;
    if (event.agent === undefined) {
      if (event.type === "session_resumed") this.#resumed(before, here);
      return;
    }
    const lane = this.#lane(event.agent, event);
    if (lane === undefined) return;
    this.#happens(lane, here, event);
    this.#bounded();
  }

  /**
   * Whose lane it is, by the name that a sender has.
   * @param {string} name
   */
  placeOf(name) {
    return this.#places.get(name);
  }

  /**
   * The lane of an agent; none for one agent more than there are lanes for.
   * @param {string} name
   * @param {Event} event
   */
  #lane(name, event) {
    const known = this.#places.get(name);
    // What is refused may be for names that nobody has.
    if (known !== undefined || event.type === "message_refused") return known;
    if (this.lanes.length >= LANES_MAX) {
      if (event.type === "agent_spawned") this.beyond += 1;
      return undefined;
    }
    const parent = event.type === "agent_spawned" ? this.#places.get(event.parent ?? "") : undefined;
    const depth = parent === undefined ? 0 : this.#at(parent).depth + 1;
    this.#places.set(name, this.lanes.length);
    this.lanes.push(new Lane(name, depth));
    return this.lanes.length - 1;
  }

  /** @param {number} lane */
  #at(lane) {
    return /** @type {Lane} */ (this.lanes[lane]);
  }

  /**
   * @param {number} lane
   * @param {Moment} here
   * @param {Event} event
   */
  #happens(lane, here, event) {
    switch (event.type) {
      case "model_started":
      case "model_finished":
      case "model_interrupted":
      case "model_retry":
        this.#replies(lane, here, event);
        break;
      case "tool_started":
      case "tool_finished":
      case "approval_requested":
      case "approval_resolved":
        this.#calls(lane, here, event);
        break;
      case "message_queued":
      case "message_refused":
      case "message_injected":
      case "message_returned":
        this.#mail(lane, here, event);
        break;
      case "stop_requested":
        this.#mark(lane, here, { type: "stop", by: short(event.by), reason: event.reason ?? "stop" });
        break;
      case "run_finished":
        this.#end(this.#at(lane).rests(), here);
        this.#mark(lane, here, { type: "run_end", outcome: event.outcome });
        break;
      case "agent_closed":
        this.#mark(lane, here, { type: "closed" });
        break;
    }
  }

  /**
   * @param {number} lane
   * @param {Moment} here
   * @param {Event} event
   */
  #replies(lane, here, event) {
    switch (event.type) {
      case "model_started": {
        this.#close(lane, "retry", here, "done");
        const isSummary = (event.purpose ?? "turn") === "summary";
        this.#open(lane, "model", here, event, isSummary ? "summary" : "model", isSummary ? "summary" : "model", "");
        break;
      }
      case "model_finished":
        this.#close(lane, "model", here, "done");
        break;
      case "model_interrupted":
        this.#close(lane, "retry", here, CUT[event.reason]);
        this.#close(lane, "model", here, CUT[event.reason]);
        break;
      case "model_retry":
        this.#close(lane, "model", here, "failed");
        this.#open(lane, "retry", here, event, "wait", "retry", short(event.error));
        break;
    }
  }

  /**
   * @param {number} lane
   * @param {Moment} here
   * @param {Event} event
   */
  #calls(lane, here, event) {
    switch (event.type) {
      case "tool_started": {
        const kind = event.name === WAIT ? "wait" : "tool";
        this.#open(lane, `call ${event.tool}`, here, event, kind, oneLine(event.name), gist(event.input));
        break;
      }
      case "tool_finished": {
        const key = `call ${event.tool}`;
        const isKnown = this.#at(lane).isOpen(key);
        if (!isKnown) this.#open(lane, key, here, event, "tool", oneLine(event.name), "");
        this.#close(lane, key, isKnown ? here : behind(here), ENDED[event.status]);
        break;
      }
      case "approval_requested": {
        const what = `${oneLine(event.name)} ${gist(event.input)}`;
        this.#open(lane, `ask ${event.tool}`, here, event, "wait", "asks", what);
        break;
      }
      case "approval_resolved":
        this.#close(lane, `ask ${event.tool}`, here, DECIDED[event.decision] ?? "unknown");
        break;
    }
  }

  /**
   * @param {number} lane
   * @param {Moment} here
   * @param {Event} event
   */
  #mail(lane, here, event) {
    switch (event.type) {
      case "message_queued": {
        const { message: id, from, urgency, text } = event;
        this.#at(lane).mail.set(id, here.order);
        this.#letter({ id, from: short(from), to: lane, sent: here, urgency, text: short(text), ahead: { type: "waits" } });
        break;
      }
      case "message_refused": {
        const { message: id, from } = event;
        const reason = short(event.reason);
        this.#letter({ id, from: short(from), to: lane, sent: here, urgency: null, text: "", ahead: { type: "refused", reason } });
        this.#mark(lane, here, { type: "refused", reason });
        break;
      }
      case "message_injected": {
        const { messages, point, skipped, interrupted } = event;
        for (const id of messages) this.#arrives(lane, id, { type: "injected", at: here, point });
        const cost = { skipped: skipped.length, interrupted: interrupted.length };
        this.#mark(lane, here, { type: "injected", point, messages: messages.length, ...cost });
        break;
      }
      case "message_returned":
        this.#arrives(lane, event.message, { type: "returned", at: here, reason: event.reason });
        this.#mark(lane, here, { type: "returned", reason: event.reason });
        break;
    }
  }

  /** @param {Letter} letter */
  #letter(letter) {
    this.letters.set(letter.sent.order, letter);
  }

  /**
   * The message has left the mailbox.
   * @param {number} to
   * @param {string} id
   * @param {Ahead} ahead
   */
  #arrives(to, id, ahead) {
    const { mail } = this.#at(to);
    const letter = this.letters.get(mail.get(id) ?? NaN);
    mail.delete(id);
    if (letter) letter.ahead = ahead;
  }

  /**
   * @param {number} lane
   * @param {Moment} at
   * @param {MarkKind} kind
   */
  #mark(lane, at, kind) {
    this.marks.set(at.order, { lane, at, kind });
  }

  /**
   * @param {number} lane
   * @param {string} key
   * @param {Moment} from
   * @param {Event} event
   * @param {Kind} kind
   * @param {string} name
   * @param {string} what
   */
  #open(lane, key, from, { run = 0, turn = 0 }, kind, name, what) {
    const row = this.#at(lane).opens(key, from.order);
    if (row === null) return this.#hidden(lane);
    this.bars.set(from.order, { lane, row, kind, name, what, from, to: null, end: "open", run, turn, hides: 0 });
  }

  /**
   * One call more than there are rows for runs beside that of the last row.
   * @param {number} lane
   */
  #hidden(lane) {
    const bar = this.bars.get(this.#at(lane).lastRow() ?? NaN);
    if (bar) bar.hides += 1;
  }

  /**
   * @param {number} lane
   * @param {string} key
   * @param {Moment} to
   * @param {End} end
   */
  #close(lane, key, to, end) {
    const bar = this.bars.get(this.#at(lane).closes(key) ?? NaN);
    if (bar) Object.assign(bar, { to, end });
  }

  /**
   * Nothing of these goes on, and nobody knows how they ended.
   * @param {number[]} bars
   * @param {Moment} to
   */
  #end(bars, to) {
    for (const from of bars) {
      const bar = this.bars.get(from);
      if (bar) Object.assign(bar, { to, end: "unknown" });
    }
  }

  /**
   * The process is gone that called models and asked people; its calls of tools are ended by events.
   * @param {Moment} before
   * @param {Moment} here
   */
  #resumed(before, here) {
    for (const lane of this.lanes) this.#end(lane.loses(), behind(before));
    this.lives.push(here);
    if (this.lives.length > LANES_MAX) this.lives.shift();
  }

  #bounded() {
    while (this.bars.size > KEPT_MAX) {
      shift(this.bars);
      this.leftOut += 1;
    }
    while (this.letters.size > KEPT_MAX) {
      const letter = shift(this.letters);
      const mail = letter && this.#at(letter.to).mail;
      // One that waits is no longer waited for.
      if (mail?.get(letter?.id ?? "") === letter?.sent.order) mail?.delete(letter?.id ?? "");
    }
    while (this.marks.size > KEPT_MAX) shift(this.marks);
  }
}

/**
 * The place behind it, before the next event.
 * @param {Moment} moment
 */
function behind({ order, at }) {
  return { order: order % 2 === 0 ? order + 1 : order, at };
}

/**
 * Takes the first one out.
 * @template T
 * @param {Map<number, T>} map
 */
function shift(map) {
  const [first] = map;
  if (first) map.delete(first[0]);
  return first?.[1];
}
