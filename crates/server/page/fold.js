/**
 * A session as people read it: the fold of its events and deltas, as `midturn_view::fold::Session` has it. Its state is
 * plain data, and its JSON is the same; `tests/fold` holds it to that.
 */

import { Conversation } from "./fold/conversation.js";
import { laidOut } from "./fold/picture.js";
import { Timeline } from "./fold/timeline.js";
import { View } from "./fold/view.js";

/** @import { Delta, Event } from './fold/types.js' */

export { isWorking, stopOf, unanswered } from "./fold/agent.js";
export { between, micros, spanMicros } from "./fold/text.js";

/** A session as far as it was told. */
export class Session {
  /** Who is there and what is under way. */
  view = new View();
  /** @type {Record<string, Conversation>} by the agent's name; without a prototype, as `view.agents` */
  conversations = Object.create(null);
  /** Who did what when; not a part of its JSON. */
  #timeline = new Timeline();

  /**
   * The next event. `false`: it changes nothing, for it was told before, is of a run that is over, or is of a kind that
   * is not known here.
   * @param {Event} event
   */
  told(event) {
    const isNew = event.seq > this.view.seq;
    if (!this.view.told(event)) {
      // What was refused is nothing to an agent, and something to whoever wrote it.
      if (isNew && event.type === "message_refused") this.#timeline.told(event);
      return false;
    }
    this.#timeline.told(event);
    const agent = event.agent === undefined ? undefined : this.view.agents[event.agent];
    if (event.agent !== undefined && agent) {
      (this.conversations[event.agent] ??= new Conversation()).told(event, agent);
    }
    return true;
  }

  /**
   * The timeline of all that goes on or comes after `from`, as it is `now`, both in microseconds: its picture, and where
   * its moments stand.
   * @param {number} from
   * @param {number} now
   */
  drawn(from, now) {
    return laidOut(this.#timeline, from, now);
  }

  /**
   * Something is said that is recorded as a whole later. `false`: it was told before.
   * @param {Delta} delta
   */
  live(delta) {
    return this.view.live(delta);
  }

  /** The stream was lost and taken up again: of what is being said, all of it comes next, each in one piece. */
  rejoined() {
    this.view.rejoined();
  }
}
