// What is over, played back: step by step, at a speed, to a moment; as in the terminal (crates/tui/src/player.rs). Pure: time is
// told, in microseconds. It holds what happened and how far that is shown; `playback.js` waits, and folds what is shown.

import { micros, spanMicros } from "./fold/text.js";

/** @import { Event } from "./fold/types.js" */

/** How many events are held. A session of more is shown, and not played. */
export const EVENTS_MAX = 20_000;

/** So long nothing happens at most, in microseconds: nobody watches a pause of an hour. */
const PAUSE_MAX = 2_000_000;

/** @type {[number, string][]} how many times as fast as it was */
const SPEEDS = [[0.25, "¼"], [0.5, "½"], [1, "1"], [2, "2"], [4, "4"], [16, "16"], [64, "64"]];

/** As fast as it was. */
const USUAL = 2;

/** No moment is later, in microseconds: as much as numbers hold. */
const MOMENT_MAX = 2 ** 53;

/** What is played. */
export class Player {
  /** @type {Event[]} */
  events = [];
  /** How many of them are shown. */
  shown = 0;
  #speed = USUAL;
  /** There were more than are held. */
  #isFull = false;

  /**
   * Nothing yet, of a session whose last event has the number `ends`. `plays`: from the beginning, as soon as there is anything.
   * @param {boolean} plays
   * @param {number} ends
   * @param {number} now
   */
  constructor(plays, ends, now) {
    this.plays = plays;
    this.ends = ends;
    /** When the last one was shown. */
    this.last = now;
  }

  /**
   * One more has happened. `true`: it is to be shown at once.
   * @param {Event} event
   */
  holds(event) {
    const follows = !this.plays && this.shown === this.events.length;
    if (this.#isFull || this.events.length >= EVENTS_MAX) {
      this.#isFull = true;
      return true;
    }
    this.events.push(event);
    if (follows) this.shown += 1;
    return follows;
  }

  /** Something of it is not to be had: it can't be played. */
  misses() {
    this.#isFull = true;
  }

  /** Whether it can be played: all of it is held. */
  get isWhole() {
    return !this.#isFull;
  }

  /**
   * The next one that is due.
   * @param {number} now
   */
  due(now) {
    const at = this.wakesAt;
    const event = this.events[this.shown];
    if (at === undefined || at > now || !event) return undefined;
    this.last = at;
    this.shown += 1;
    this.plays &&= event.seq < this.ends;
    return event;
  }

  /** When the next one is due. Nothing: nothing moves by itself. */
  get wakesAt() {
    const next = this.events[this.shown];
    if (!this.plays || !next) return undefined;
    const before = this.shown > 0 ? this.#at(this.shown) : micros(next.t);
    const pause = Math.floor(Math.max(0, micros(next.t) - before) / this.#times);
    return this.last + Math.min(pause, PAUSE_MAX);
  }

  /**
   * Goes on, or waits; at the end it begins anew.
   * @param {number} now
   */
  toggles(now) {
    [this.plays, this.last] = [!this.plays, now];
    if (this.shown >= this.events.length) this.shown = 0;
  }

  /** Nobody has looked for a while: the next pause begins now. @param {number} now */
  rests(now) {
    this.last = now;
  }

  /** One further. It waits then. */
  steps() {
    this.#to(Math.min(this.shown + 1, this.events.length));
  }

  /** One back. It waits then. */
  back() {
    this.#to(Math.max(0, this.shown - 1));
  }

  /** To a moment: all that was by then is shown. It waits then. @param {number} at */
  toMoment(at) {
    const later = this.events.findIndex((event) => micros(event.t) > at);
    this.#to(later < 0 ? this.events.length : later);
  }

  /** So many are shown. It waits then. @param {number} shown */
  toStep(shown) {
    this.#to(Math.max(0, Math.min(Math.round(shown), this.events.length)));
  }

  /** @param {number} shown */
  #to(shown) {
    [this.plays, this.shown] = [false, shown];
  }

  /**
   * Faster, or slower.
   * @param {boolean} faster
   * @param {number} now
   */
  speeds(faster, now) {
    this.last = now;
    this.#speed = Math.max(0, Math.min(this.#speed + (faster ? 1 : -1), SPEEDS.length - 1));
  }

  get #times() {
    return SPEEDS[this.#speed]?.[0] ?? 1;
  }

  /** How fast it is, in words: `1×`. */
  get speed() {
    return `${SPEEDS[this.#speed]?.[1]}×`;
  }

  /** Where it is, in words: `plays 2.5 of 4.0 s, 1×`. */
  says() {
    return `${this.plays ? "plays" : "at"} ${tenths(this.#at(this.shown))} of ${tenths(this.#at(this.events.length))} s, ${this.speed}`;
  }

  /** The moment, for those who read nothing else: `2.5 s of 4.0 s`. */
  get moment() {
    return `${tenths(this.#at(this.shown))} s of ${tenths(this.#at(this.events.length))} s`;
  }

  /** When the last one of so many was. @param {number} shown */
  #at(shown) {
    const event = this.events[shown - 1];
    return event ? micros(event.t) : 0;
  }

  /** Whether all of it is shown. */
  get isAtEnd() {
    return this.shown === this.events.length;
  }
}

/** Seconds with one decimal; what is left out is cut off. @param {number} micros */
function tenths(micros) {
  return `${Math.floor(micros / 1_000_000)}.${Math.floor(micros / 100_000) % 10}`;
}

/**
 * A moment as a clock has it, or as durations are written, in microseconds; a bare number counts seconds. Nothing: it is none.
 * @param {string} words
 */
export function momentOf(words) {
  const said = words.trim();
  const [, minutes, seconds] = /^(\d+):(\d+)$/.exec(said) ?? [];
  if (minutes !== undefined && seconds !== undefined) {
    return Number(seconds) < 60 ? within((Number(minutes) * 60 + Number(seconds)) * 1_000_000) : undefined;
  }
  if (!/^\d+(\.\d+)?(us|ms|s|m|h)?$/.test(said)) return undefined;
  return within(spanMicros(/[a-z]$/.test(said) ? said : `${said}s`));
}

/** @param {number} at */
function within(at) {
  return at <= MOMENT_MAX ? at : undefined;
}
