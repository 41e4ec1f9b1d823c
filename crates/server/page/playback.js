// What is over, on the page: as much of it is folded as the player shows. Time passes here; `player.js` decides.

import { Session } from "./fold.js";
import { Player, momentOf } from "./player.js";
import { told } from "./told.js";

/** @import { Event } from "./fold/types.js" */
/** @import { Page } from "./page.js" */

/** What time it is, as a player is told it: in microseconds. */
const now = () => Math.round(performance.now() * 1000);

/** What was told of a session that is over, and how much of it is shown. */
export class Playback {
  /** How many of the player's events are folded. */
  #folded = 0;
  #whole = new Session();
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

  /**
   * One more has happened. `true`: it is to be folded now.
   * @param {Event} event
   */
  holds(event) {
    if (!this.player.holds(event)) return false;
    this.#folded = this.player.shown;
    return true;
  }

  /** All of it, folded. */
  get whole() {
    const { events } = this.player;
    for (; this.#wholly < events.length; this.#wholly += 1) this.#whole.told(/** @type {Event} */ (events[this.#wholly]));
    return this.#whole;
  }

  /**
   * Folds what is shown by now: further, or anew where less is shown than before. Then waits for what is due next, while somebody
   * looks.
   * @param {() => void} anew
   * @param {(event: Event) => void} folds
   */
  brings(anew, folds) {
    const { player } = this;
    clearTimeout(this.#timer);
    if (!player.isWhole) return;
    if (document.hidden || this.#wasHidden) player.rests(now());
    this.#wasHidden = document.hidden;
    if (document.hidden) return;
    while (player.due(now()));
    if (player.shown < this.#folded) {
      anew();
      this.#folded = 0;
    }
    for (; this.#folded < player.shown; this.#folded += 1) folds(/** @type {Event} */ (player.events[this.#folded]));
    const next = player.wakesAt;
    if (next !== undefined) this.#timer = setTimeout(this.draw, Math.max(0, (next - now()) / 1000));
  }

  close() {
    clearTimeout(this.#timer);
  }
}

/** What of a page is played, if anything can be. @param {Page} page */
export function played(page) {
  const playback = page.watched?.playback;
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
  const words = does(player);
  page.say(words || player.moment);
}

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
    return [player.moment, event && told(event, page.agent)].filter(Boolean).join(": ");
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
