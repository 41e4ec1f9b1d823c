// One session that is watched: its events, folded as they come.

import { Inbox, TOO_LARGE, follow, pause } from "./sse.js";
import { takePlace } from "./places.js";
import { Refused } from "./api.js";
import { Folded } from "./folded.js";
import { Playback } from "./playback.js";

/** @import {Api} from "./api.js" */
/** @import {Frame} from "./sse.js" */
/** @import {Place} from "./places.js" */

/** So many of the newest events are asked for; of what was before them the list of agents tells. */
const EVENTS_MAX = 20_000;

/** So often a tab asks that has no place for a stream. */
const ASK_MS = 5000;

/** So long one frame folds before it draws: as long as it draws, or else most of catching up would be drawing. */
const FOLD_MS = { least: 8, most: 100 };

/** @type {Map<string, any>} */
const NOBODY = new Map();

const LIVE = new Set(["text_delta", "thinking_delta", "call_delta", "tool_output", "setup_output"]);

/** @typedef {"connecting" | "live" | "asking" | "offline" | "stored" | "refused"} Line */

/** A session, and the stream that tells of it. */
export class Watched {
  /**
   * @param {Api} api
   * @param {any} session as the server lists it
   * @param {() => void} onChange
   * @param {(event: any) => void} onEvent what has just happened, not what is only caught up with
   * @param {boolean} plays whether what is over is played at once
   */
  constructor(api, session, onChange, onEvent, plays = false) {
    this.api = api;
    this.session = session;
    this.onChange = onChange;
    this.onEvent = onEvent;
    this.folded = new Folded();
    /** @type {Map<string, any>} */
    this.known = new Map();
    /** What is over can be played back. */
    this.playback = session.live ? null : new Playback(plays, session.last_seq, onChange);
    /** @type {Line} */
    this.line = session.live ? "connecting" : "stored";
    this.why = "";
    this.againAt = 0;
    /** Something that was told was too large to be read. */
    this.misses = false;
    this.from = Math.max(0, session.last_seq - EVENTS_MAX);
    if (this.from > 0) this.playback?.player.misses();
    this.caughtUp = session.last_seq <= this.from;
    this.offset = Infinity;
    this.inbox = new Inbox(onChange);
    this.ends = new AbortController();
    this.wakes = new AbortController();
    this.isAsking = false;
    this.asksAgain = false;
    this.askedAt = 0;
  }

  get id() {
    return this.session.session;
  }

  /** What the address calls it. @returns {"session" | "replay"} */
  get kind() {
    return "session";
  }

  /** The number of the last event that is known. */
  get seq() {
    return Math.max(this.from, this.playback?.player.events.at(-1)?.seq ?? 0, this.fold.view.seq);
  }

  /** What the server says of each agent beside its events: how it is at the end. */
  get listed() {
    return this.playback?.isAmid ? NOBODY : this.known;
  }

  /** The fold of all that is here, of which less may be shown. */
  get whole() {
    return this.playback?.canPlay ? this.playback.whole : this.fold;
  }

  get fold() {
    return this.folded.fold;
  }

  get notes() {
    return this.folded.notes;
  }

  /** How late it is in the session. */
  get now() {
    return Math.max(this.fold.view.t, Number.isFinite(this.offset) ? Date.now() / 1000 - this.offset : 0);
  }

  /** Follows it until `close`: by a stream where there is a place for one, else by asking. */
  async watch() {
    void this.list();
    while (!this.ends.signal.aborted) {
      const place = await takePlace(this.id);
      if (this.ends.signal.aborted) return place?.giveUp();
      if (place && (await this.#follow(place))) return;
      // Who has just given a place up doesn't take it back at once.
      if (await this.#ask()) return;
    }
  }

  /** Somebody looks at this tab: it wants a place now. */
  wake() {
    this.wakes.abort();
    this.wakes = new AbortController();
  }

  /**
   * @param {Place} place
   * @returns {Promise<boolean>} nothing more will come
   */
  async #follow(place) {
    const end = await follow({
      open: (after, signal) => this.api.open(`sessions/${this.id}/events?answers=true&after=${after}`, signal),
      after: () => this.seq,
      take: (frame) => this.inbox.put(frame),
      joined: () => this.#joined(),
      lost: ({ inMs, error }) => this.#lost(inMs, error),
      isFinal: (error) => error instanceof Refused && [401, 403, 404, 421].includes(error.status),
      isOver: () => this.#isStored(),
      signal: AbortSignal.any([this.ends.signal, place.signal]),
    });
    await place.giveUp();
    if (end === "stopped") return false;
    this.line = end === "over" ? "stored" : "refused";
    this.why = end === "over" ? "" : end.message;
    this.onChange();
    return true;
  }

  /**
   * What a stream would have told, without its deltas.
   * @returns {Promise<boolean>} nothing more will come
   */
  async #ask() {
    if (this.ends.signal.aborted) return true;
    try {
      for (let more = true; more && !this.ends.signal.aborted; ) {
        const { events, next } = await this.api.get(`sessions/${this.id}/log?after=${this.seq}&limit=1000`);
        for (const event of events) this.tells(event);
        more = next !== undefined && events.length > 0;
      }
      this.line = this.session.live ? "asking" : "stored";
      void this.list();
    } catch (error) {
      this.#lost(ASK_MS, error);
    }
    this.onChange();
    if (this.line === "stored") return true;
    await pause(ASK_MS, AbortSignal.any([this.ends.signal, this.wakes.signal]));
    return false;
  }

  close() {
    this.playback?.close();
    this.ends.abort();
    this.inbox.clear();
  }

  #joined() {
    this.line = this.session.live ? "live" : "stored";
    this.fold.rejoined();
    void this.list();
    if (this.from > 0) void this.#asks();
    this.onChange();
  }

  /** What was asked before the first event that is told. */
  async #asks() {
    const { approvals } = await this.api.get(`sessions/${this.id}/approvals`).catch(() => ({ approvals: [] }));
    const { view } = this.fold;
    for (const { agent, tool, name, input, always, since } of approvals) {
      const isKnown = view.asks.some((ask) => ask.agent === agent && ask.tool === tool);
      if (!isKnown) view.asked({ agent, tool, name, input, always, since });
    }
    this.onChange();
  }

  /**
   * @param {number} inMs
   * @param {unknown} error
   */
  #lost(inMs, error) {
    this.line = "offline";
    this.why = error instanceof Refused ? error.detail : "The connection is lost";
    this.againAt = Date.now() + inMs;
    this.onChange();
  }

  async #isStored() {
    this.session = await this.api.get(`sessions/${this.id}`);
    return !this.session.live;
  }

  /** Asks what events don't say: spend, branches, the size of the context. One request at a time. */
  async list() {
    this.asksAgain = this.isAsking;
    if (this.isAsking) return;
    this.isAsking = true;
    this.askedAt = Date.now();
    try {
      const { agents } = await this.api.get(`sessions/${this.id}/agents`);
      this.known = new Map(agents.map((/** @type {any} */ agent) => [agent.name, agent]));
      this.onChange();
    } catch {
      // The stream says what is wrong.
    } finally {
      this.isAsking = false;
    }
    // What was wanted meanwhile may be newer than this answer.
    if (this.asksAgain && !this.ends.signal.aborted) await this.list();
  }

  /**
   * Folds what has come, for as long as a frame has time.
   * @param {number} drawnIn how long the last frame took to draw, in milliseconds
   * @returns {boolean} something is left
   */
  takeIn(drawnIn) {
    const until = performance.now() + Math.min(Math.max(FOLD_MS.least, drawnIn), FOLD_MS.most);
    const isMore = this.inbox.drain((frame) => this.#frame(frame), () => performance.now() > until);
    if (!this.playback) return isMore;
    this.folded = this.playback.brings(this.folded);
    return isMore || (this.playback.isBehind && !document.hidden);
  }

  /** @param {Frame} frame */
  #frame(frame) {
    if (frame.event === TOO_LARGE) this.misses = true;
    /** @type {any} */
    let told;
    try {
      told = JSON.parse(frame.data);
    } catch {
      return;
    }
    if (frame.event === "resync") {
      if (told.last < this.seq) this.#startOver();
    } else if (LIVE.has(frame.event)) {
      this.#clock(told.t);
      this.fold.live(told);
    } else if (frame.event === "agents_changed") void this.list();
    else this.tells(told);
  }

  /** The store knows less than we were told: what we were told beyond it never happened. */
  #startOver() {
    this.folded = new Folded();
    this.from = 0;
    this.playback?.close();
    this.playback &&= new Playback(false, this.session.last_seq, this.onChange);
  }

  /** The next event. What is played back is folded once it is shown. @param {any} event */
  tells(event) {
    if (event.seq <= this.seq) return;
    const isHeld = this.playback?.holds(event, this.folded) ?? false;
    const isNew = !isHeld && this.folded.tells(event);
    if (!this.caughtUp) this.caughtUp = event.seq >= this.session.last_seq;
    else if (isNew) {
      this.#clock(event.t);
      this.onEvent(event);
    }
  }

  /**
   * An event can't come before it happens: the least difference is the best.
   * @param {number} t
   */
  #clock(t) {
    if (this.line === "live") this.offset = Math.min(this.offset, Date.now() / 1000 - t);
  }
}

/**
 * Whether a run of it is under way.
 * @param {any} agent
 */
export function isWorking(agent) {
  return agent !== undefined && agent.run > agent.ended;
}
