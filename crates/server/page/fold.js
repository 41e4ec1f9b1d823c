/**
 * A session as people read it: the fold of its events and deltas, as `midturn_view::fold::Session` has it. Its state is
 * plain data, and its JSON is the same; `tests/fold` holds it to that.
 */

import { Conversation } from "./fold/conversation.js";
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

  /**
   * The next event. `false`: it changes nothing, for it was told before, is of a run that is over, or is of a kind that
   * is not known here.
   * @param {Event} event
   */
  told(event) {
    if (!this.view.told(event)) return false;
    const agent = event.agent === undefined ? undefined : this.view.agents[event.agent];
    if (event.agent !== undefined && agent) {
      (this.conversations[event.agent] ??= new Conversation()).told(event, agent);
    }
    return true;
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
