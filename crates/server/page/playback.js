// What is over, on the page: as much of it is folded as the player shows. Time passes here; `player.js` decides.

import { Folded } from "./folded.js";
import { Player, momentOf } from "./player.js";
import { told } from "./told.js";

/** @import { Event } from "./fold/types.js" */
/** @import { Page } from "./page.js" */

/** What time it is, as a player is told it: in microseconds. */
const now = () => Math.round(performance.now() * 1000);

/** So long one frame folds before it draws. */
const FOLD_MS = 24;

const nothing = () => ({ folded: new Folded(), count: 0 });

/** What was told of a session that is over, and how much of it is shown. */
export class Playback {
  /** How many of the player's events are in what is shown. */
  #folded = 0;
  /** What is folded anew, because less is to be shown than is: until it is as far, what was shown is. */
  #next = nothing();
  /** All of it. */
  #whole = new Folded();
  #wholly = 0;
  #wasHidden = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} until the next one is due */
  #timer = undefined;

  /**
   * @param {boolean} plays from the beginning, as soon as there is anything
   * @param {number} ends the number of the last event that there will be
   * @param {() => void} draw
   */
  constructor(plays, ends, draw) {
    this.player = new Player(plays, ends, now());
    this.draw = draw;
  }

  /** Whether there is anything to be played, and all of it is here. */
  get canPlay() {
    return this.player.isWhole && this.player.events.length > 0;
  }

  /** Whether less is shown than there is: what only the whole has is not to be told then. */
  get isAmid() {
    return this.player.isWhole && !this.player.isAtEnd;
  }

  /** Whether what is shown is not yet what the player shows. */
  get isBehind() {
    return this.player.isWhole && this.#folded !== this.player.shown;
  }

  /**
   * One more has happened. `false`: it is one too many, nothing is played, and whoever told of it folds it.
   * @param {Event} event
   * @param {Folded} shown
   */
  holds(event, shown) {
    this.player.holds(event);
    if (this.player.isWhole) return true;
    const { events } = this.player;
    for (; this.#folded < events.length; this.#folded += 1) shown.tells(events[this.#folded]);
    return false;
  }

  /** All of it, folded. */
  get whole() {
    const { events } = this.player;
    for (; this.#wholly < events.length; this.#wholly += 1) this.#whole.tells(events[this.#wholly]);
    return this.#whole.fold;
  }

  /**
   * What is to be shown in place of this: as far as the player is, or on the way there for as long as a frame has time. Then it
   * waits for what is due next, while somebody looks.
   * @param {Folded} shown
   */
  brings(shown) {
    const { player } = this;
    clearTimeout(this.#timer);
    if (!player.isWhole) return shown;
    if (document.hidden || this.#wasHidden) player.rests(now());
    this.#wasHidden = document.hidden;
    if (document.hidden) return shown;
    while (player.due(now()));
    const next = player.shown < this.#folded ? this.#back(shown) : this.#on(shown);
    this.#waits();
    return next;
  }

  /** As much or more is to be shown. @param {Folded} shown */
  #on(shown) {
    const { events } = this.player;
    this.#folded = this.#folds(shown, this.#folded);
    // Once all of it is there it is the whole, and no event changes it any more.
    if (this.#folded === events.length && this.#wholly < events.length) [this.#whole, this.#wholly] = [shown, events.length];
    return shown;
  }

  /** Less is to be shown: that is folded anew. @param {Folded} shown */
  #back(shown) {
    if (this.#next.count > this.player.shown) this.#next = nothing();
    const { folded, count } = this.#next;
    this.#next.count = this.#folds(folded, count);
    if (this.#next.count < this.player.shown) return shown;
    [this.#folded, this.#next] = [this.#next.count, nothing()];
    return folded;
  }

  /**
   * Folds on from so many events, for as long as a frame has time.
   * @param {Folded} folded
   * @param {number} count
   * @returns {number} how many are folded then
   */
  #folds(folded, count) {
    const { events, shown } = this.player;
    const until = performance.now() + FOLD_MS;
    while (count < shown && performance.now() < until) folded.tells(events[count++]);
    return count;
  }

  #waits() {
    const next = this.player.wakesAt;
    if (next !== undefined && !this.isBehind) this.#timer = setTimeout(this.draw, Math.max(0, (next - now()) / 1000));
  }

  close() {
    clearTimeout(this.#timer);
  }
}

/** What of a page is played, if anything can be. @param {Page} page */
export function played(page) {
  const playback = page.phase === "watching" ? page.watched?.playback : null;
  return playback?.canPlay ? playback.player : undefined;
}

/**
 * Does something to what is played, and says where it is then.
 * @param {Page} page
 * @param {(player: Player) => string | void} does
 */
export function plays(page, does) {
  const player = played(page);
  if (!player) return;
  const words = does(player) || player.moment;
  // Where it was a moment ago is nothing to be told any more.
  if (page.said === said.get(page)) page.saidAt = -Infinity;
  page.say(words);
  said.set(page, page.said);
}

/** What was said last of where each page is. @type {WeakMap<Page, string>} */
const said = new WeakMap();

/** @param {Page} page */
export function toggles(page) {
  plays(page, (player) => {
    player.toggles(now());
    return player.plays ? `Plays from ${player.moment}` : `Waits at ${player.moment}`;
  });
}

/** @param {Page} page */
export function steps(page) {
  plays(page, (player) => {
    if (player.isAtEnd) return "This is the end";
    player.steps();
    const event = player.events[player.shown - 1];
    const words = event && told(event, page.agent);
    return `${player.shown} of ${player.events.length}, ${player.moment}${words ? `: ${words}` : ""}`;
  });
}

/** @param {Page} page */
export function back(page) {
  plays(page, (player) => player.back());
}

/**
 * @param {Page} page
 * @param {boolean} faster
 */
export function speeds(page, faster) {
  plays(page, (player) => {
    player.speeds(faster, now());
    return `${player.speed} as fast`;
  });
}

/**
 * @param {Page} page
 * @param {number} at in microseconds
 */
export function goesTo(page, at) {
  plays(page, (player) => player.toMoment(at));
}

/**
 * To a moment that somebody wrote. `false`: it is none.
 * @param {Page} page
 * @param {string} words
 */
export function goesToWritten(page, words) {
  const at = momentOf(words);
  if (at === undefined) page.say("Write a moment as in 2.5s, 2m or 1:04");
  else goesTo(page, at);
  return at !== undefined;
}

/** @type {Record<string, (page: Page) => void>} */
const KEYS = {
  " ": toggles,
  ArrowRight: steps,
  ArrowLeft: back,
  "+": (page) => speeds(page, true),
  "=": (page) => speeds(page, true),
  "-": (page) => speeds(page, false),
};

/**
 * A key, where nobody types and nothing else takes it.
 * @param {Page} page
 * @param {KeyboardEvent} event
 */
export function keyPlays(page, { key, target, ctrlKey, altKey, metaKey }) {
  const does = KEYS[key];
  if (!does || ctrlKey || altKey || metaKey || !played(page)) return false;
  if (target instanceof Element && isTaken(target, key)) return false;
  does(page);
  return true;
}

/**
 * Whether what has the focus does something with this key itself.
 * @param {Element} target
 * @param {string} key
 */
function isTaken(target, key) {
  if (target.matches("input:not([type=range]), textarea, select")) return true;
  if (key === " ") return target.matches("button, summary");
  return target.matches("input") ? key.startsWith("Arrow") : target.closest("[role=tablist], .chart, .menu") !== null;
}
