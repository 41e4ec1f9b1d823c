/**
 * The fold of a session (crates/core/src/rules/view/mod.rs): its events in, what can be seen of it out. What is told
 * twice, or belongs to a run that is over, changes nothing. It knows no prices and no clock.
 */

import { isEvent, isOver, rests, told, unknownAgent } from "./agent.js";
import { isDelta, says } from "./said.js";

/** @import { Agent, Ask, Delta, Event, Usage } from './types.js' */

/** How many agents of a session are followed, closed ones included. */
const AGENTS_MAX = 16_384;

/** How many waiting messages of a session are followed: 64 full mailboxes. */
const WAITING_MAX = 65_536;

/** How many requests for a person's word are followed: more than a session has. */
const ASKS_MAX = 4_096;

/** A session as far as it was told. */
export class View {
  /** The number of the last event. */
  seq = 0;
  /** What time it is. */
  t = 0;
  /** @type {Record<string, Agent>} by name; without a prototype, for an agent may be called `constructor` */
  agents = Object.create(null);
  /** @type {Ask[]} in the order in which they were told */
  asks = [];
  /** How many messages wait in all mailboxes. */
  waiting = 0;
  /** How many agents there are. */
  #count = 0;

  /**
   * The next event. `false`: it changes nothing, for it was told before, is of a run that is over or of a kind that is
   * not known here, or is more than is followed.
   * @param {Event} event
   */
  told(event) {
    if (!isEvent(event) || event.seq <= this.seq) return false;
    this.seq = event.seq;
    this.now(event.t);
    if (event.agent === undefined) {
      if (event.type === "session_resumed") this.#resumed();
      return true;
    }
    const isTooMuch = event.type === "message_queued" && this.waiting >= WAITING_MAX;
    // What is refused may be for names that nobody has.
    if (isTooMuch || event.type === "message_refused") return false;
    const agent = this.#agent(event.agent);
    if (!agent) return false;
    const before = agent.queue.length;
    const changes = told(agent, event);
    this.waiting = Math.max(0, this.waiting + agent.queue.length - before);
    if (changes) this.#asks(event.agent, event);
    return changes;
  }

  /**
   * Something is said that is recorded as a whole later. `false`: nothing of it is new.
   * @param {Delta} delta
   */
  live(delta) {
    if (!isDelta(delta)) return false;
    const agent = delta.agent === undefined ? undefined : this.#agent(delta.agent);
    if (!agent) return true;
    if (delta.run !== undefined && isOver(agent, delta.run)) return false;
    return says(agent.said, delta);
  }

  /** The stream was lost and taken up again: of what is being said, all of it comes next, each in one piece. */
  rejoined() {
    for (const agent of Object.values(this.agents)) {
      for (const piece of agent.said) piece.rejoined = true;
    }
  }

  /**
   * It is so late now.
   * @param {number} t
   */
  now(t) {
    this.t = Math.max(this.t, t);
  }

  /**
   * A request that was open before the first event that is told.
   * @param {Ask} ask
   */
  asked(ask) {
    // An event may tell of it, too: whoever was shown both has seen the later one.
    const known = this.asks.findIndex((one) => one.agent === ask.agent && one.tool === ask.tool);
    if (known >= 0) this.asks[known] = ask;
    else if (this.asks.length < ASKS_MAX) this.asks.push(ask);
  }

  /**
   * What all whole replies that were told have used.
   * @returns {Usage}
   */
  usage() {
    const all = { input: 0, output: 0, cached: 0 };
    for (const { usage } of Object.values(this.agents)) {
      all.input += usage.input;
      all.output += usage.output;
      all.cached += usage.cached;
    }
    return all;
  }

  /** The process that asked and called is gone, and its requests with it. */
  #resumed() {
    Object.values(this.agents).forEach(rests);
    this.asks = [];
  }

  /**
   * @param {string} agent
   * @param {Event} event
   */
  #asks(agent, event) {
    if (event.type === "approval_requested") {
      const { tool, name, input, always, t } = event;
      this.asked({ agent, tool, name, input, always, since: t });
    } else if (event.type === "approval_resolved") {
      this.asks = this.asks.filter((ask) => ask.agent !== agent || ask.tool !== event.tool);
    } else if (["run_started", "run_finished", "agent_closed"].includes(event.type)) {
      this.asks = this.asks.filter((ask) => ask.agent !== agent);
    }
  }

  /**
   * @param {string} name
   * @returns {Agent | undefined}
   */
  #agent(name) {
    const known = this.agents[name];
    if (known || this.#count >= AGENTS_MAX) return known;
    this.#count += 1;
    return (this.agents[name] = unknownAgent());
  }
}
