// What waits for the person, and how they are told who don't look: by the tab's title, and, once they have asked for it, by
// the browser. All tabs of this address tell each thing once, also after a reload.

import { keep, kept } from "./kept.js";
import { needLine, needs, oneLine } from "./words.js";

/** @import {Page} from "./page.js" */
/** @import {Need, Conflict} from "./words/inbox.js" */
/** @import {Watched} from "./watched.js" */

/** So many that were told are remembered; the newest. */
const TOLD_MAX = 512;

/** So many are told one by one; more that come at once are told together. */
const AT_ONCE = 3;

/** How long a text a notification has, in characters. */
const SHOWN = 200;

/** Whether this browser can tell at all. */
export const canTell = () => "Notification" in globalThis && window.isSecureContext;

export class Inbox {
  /** What the last look found of which session, so that nothing is done for the same again. */
  #seen = "";
  /** @type {Set<string>} what this tab has told, or shown to somebody who looked */
  #known = new Set();
  /** @type {unknown} the session that this is about */
  #watched = null;
  /** @type {(() => void) | null} ends the lock of a tab that is looked at */
  #looksAway = null;
  #lookedAt = "";

  /** @param {Page} page */
  constructor(page) {
    this.page = page;
  }

  /** @returns {Need[]} what waits, the newest first */
  get needs() {
    const { watched } = this.page;
    if (!watched || !this.page.isLive) return [];
    return needs(watched.fold.view, conflicts(watched), watched.session.lead);
  }

  /** Whether the browser tells, on this address. */
  get isOn() {
    return canTell() && kept("notify") === "on" && Notification.permission === "granted";
  }

  /** Looks what waits now, and tells what is new to whoever doesn't look. */
  look() {
    const { watched } = this.page;
    if (this.#watched !== watched) this.#begin(watched);
    const all = this.needs;
    this.#title(all.length);
    this.#hold(isLookedAt() && watched ? watched.id : "");
    if (!watched?.caughtUp) return;
    const seen = JSON.stringify(all.map(({ id }) => id));
    if (seen === this.#seen) return;
    const first = this.#seen === "";
    this.#seen = seen;
    const news = all.filter(({ id }) => !this.#known.has(id));
    this.#known = new Set(all.map(({ id }) => id).concat([...this.#known].slice(-TOLD_MAX)));
    // What was there when it was opened is on the page, which somebody has just opened.
    if (news.length > 0) void this.#tell(watched.id, news, !first && !isLookedAt());
  }

  /** @param {unknown} watched */
  #begin(watched) {
    [this.#watched, this.#seen] = [watched, ""];
    this.#known.clear();
  }

  /** @param {number} count */
  #title(count) {
    const task = oneLine(this.page.watched?.session.title ?? "").slice(0, 80);
    const title = `${count > 0 ? `(${count}) ` : ""}${task ? `${task} · ` : ""}Midturn`;
    if (document.title !== title) document.title = title;
  }

  /**
   * While a tab is looked at no other tab of its session tells anything: they see it by this lock.
   * @param {string} session
   */
  #hold(session) {
    if (session === this.#lookedAt) return;
    this.#lookedAt = session;
    this.#looksAway?.();
    this.#looksAway = null;
    if (!session || !navigator.locks) return;
    const held = new Promise((/** @type {(value: void) => void} */ end) => (this.#looksAway = end));
    navigator.locks.request(looks(session), { mode: "shared" }, () => held).catch(() => {
      // A page that goes away holds nothing.
    });
  }

  /**
   * One tab after the other: each tells what none before it has told.
   * @param {string} session
   * @param {Need[]} news
   * @param {boolean} isAway nobody looks at this tab
   */
  async #tell(session, news, isAway) {
    const tell = async () => {
      const told = read(kept("told"));
      const name = (/** @type {Need} */ need) => `${session} ${need.id}`;
      const untold = news.filter((need) => !told.includes(name(need)));
      keep("told", JSON.stringify([...told, ...untold.map(name)].slice(-TOLD_MAX)));
      if (!isAway || (await isSeenElsewhere(session))) return;
      if (this.isOn) this.#notify(session, untold);
      // The person's own way to be told is the server's to go: to it somebody is there.
      for (const { id } of untold) await this.#unseen(session, id);
    };
    if (navigator.locks) await navigator.locks.request("midturn.tells", tell);
    else await tell();
  }

  /**
   * @param {string} session
   * @param {string} need
   */
  async #unseen(session, need) {
    if (this.page.isJoined) return;
    try {
      await this.page.api?.post(`sessions/${session}/unseen`, { need });
    } catch {
      // The stream says what is wrong.
    }
  }

  /**
   * @param {string} session
   * @param {Need[]} all
   */
  #notify(session, all) {
    if (all.length > AT_ONCE) this.#show(session, `${session} ${all[0].id}`, `${all.length} wait for you: ${needLine(all[0])}, …`, all[0]);
    else for (const need of all) this.#show(session, `${session} ${need.id}`, needLine(need), need);
  }

  /**
   * @param {string} session
   * @param {string} tag
   * @param {string} body
   * @param {Need} need
   */
  #show(session, tag, body, need) {
    const task = oneLine(this.page.watched?.session.title ?? "").slice(0, 80);
    try {
      const shown = new Notification(task ? `Midturn: ${task}` : "Midturn", { body: body.slice(0, SHOWN), tag, icon: "icon.svg" });
      shown.onclick = () => {
        window.focus();
        shown.close();
        if (this.page.watched?.id === session) this.go(need);
      };
    } catch {
      // Some browsers on phones have only notifications of service workers: the title says it there.
    }
  }

  /** Shows who waits. @param {Need} need */
  go(need) {
    this.page.dialog = null;
    this.page.choose(need.agent);
    this.page.show(need.what === "conflict" ? "diff" : "talk");
  }

  /** A click asks for it: the browser asks the person, once. */
  async turnOn() {
    const allowed = canTell() && (await Notification.requestPermission()) === "granted";
    keep("notify", allowed ? "on" : null);
    this.page.say(allowed ? "You are told when you don't look" : "The browser doesn't allow notifications here");
  }

  turnOff() {
    keep("notify", null);
    this.page.say("You are not told any more");
  }
}

/**
 * The merges that would not go, by agent.
 * @param {Watched} watched
 * @returns {Map<string, Conflict>}
 */
function conflicts({ listed }) {
  return new Map([...listed].flatMap(([name, { conflict }]) => (conflict ? [[name, conflict]] : [])));
}

/** Whether somebody looks at this tab. */
function isLookedAt() {
  return !document.hidden && document.hasFocus();
}

/** @param {string} session */
function looks(session) {
  return `midturn.looks.${session}`;
}

/** Whether another tab of this session is looked at. @param {string} session */
async function isSeenElsewhere(session) {
  if (!navigator.locks) return false;
  const { held = [] } = await navigator.locks.query();
  return held.some(({ name }) => name === looks(session));
}

/**
 * @param {string | null} json
 * @returns {string[]}
 */
function read(json) {
  try {
    const told = JSON.parse(json ?? "[]");
    return Array.isArray(told) ? told.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}
