// A scenario that the server keeps, watched as a session is: all of it is there at once, and nothing of it runs.

import { Refused } from "./api.js";
import { oneLine } from "./words.js";
import { EVENTS_MAX } from "./player.js";
import { Watched } from "./watched.js";

/** @import { Api } from "./api.js" */
/** @import { Page } from "./page.js" */

export class Replayed extends Watched {
  /**
   * @param {Api} api
   * @param {string} id
   * @param {{name?: string, before: {events: any[]}}} played
   * @param {() => void} draw
   */
  constructor(api, id, { name, before: { events } }, draw) {
    const title = `Replay: ${oneLine(name ?? "") || "a scenario"}`;
    const session = { session: id, title, folder: "", live: false, last_seq: events.at(-1)?.seq ?? 0 };
    const plays = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    super(api, session, draw, () => undefined, plays);
    // All that is held is there: there is no part of it to be asked for.
    this.from = 0;
    if (events.length > EVENTS_MAX) this.playback?.player.misses();
    this.events = events;
  }

  /** @returns {"replay"} */
  get kind() {
    return "replay";
  }

  async watch() {
    for (const event of this.events) this.tells(event);
    this.events = [];
    this.onChange();
  }

  async list() {
    // Beside its events there is nothing to be known of it.
  }
}

/**
 * Opens a scenario that is kept.
 * @param {Page} page
 * @param {string} id
 */
export async function openReplay(page, id) {
  page.phase = "choosing";
  page.draw();
  try {
    const played = await page.server().get(`replays/${encodeURIComponent(id)}`);
    page.watch(new Replayed(page.server(), id, played, page.draw));
  } catch (error) {
    if (!page.api) return;
    // Another one is being played, or nobody answered: that passes.
    if (!(error instanceof Refused) || error.status === 429) page.retry(error, () => void openReplay(page, id));
    else await offers(page, error.detail);
  }
}

/**
 * What there is in its place.
 * @param {Page} page
 * @param {string} why
 */
async function offers(page, why) {
  history.replaceState(null, "", location.pathname);
  page.why = why;
  page.say(why);
  page.sessions = await page.server().get("sessions").then(({ sessions }) => sessions, () => []);
  page.draw();
}
