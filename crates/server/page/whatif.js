// What would have been, had a message come sooner or later: it is moved, and the session is played again.

import { Refused } from "./api.js";
import { Chart } from "./chart.js";
import { Session } from "./fold.js";
import { isWorking } from "./watched.js";
import { why } from "./ways.js";

/** @import { Page } from "./page.js" */
/** @import { LetterDrawn } from "./fold/picture.js" */

/** A key moves a message so far; with Shift so far, in milliseconds. */
const [STEP, LEAP] = [100, 1000];

/** A pointer moves it in such steps, in milliseconds. */
const GRAIN = 10;

/** A message is moved no farther, in milliseconds: an hour. */
const FARTHEST = 3_600_000;

/** So far a pointer goes before it is one that moves something, in pixels. */
const MOVES = 4;

/**
 * What came of it, and of the session as it was.
 * @typedef {{before: Session, after: Session, changes: string[], calls: number, files: string[], tokens: number}} Played
 */

/** The timeline as one looks at it, and what is played with it. */
export class Timelines {
  /** @type {{key: string, id: string, says: string} | null} the message that is moved */
  moving = null;
  /** By how much, in milliseconds. */
  shift = 0;
  isAsking = false;
  error = "";
  /** @type {Played | null} */
  played = null;

  /** @param {() => void} draw */
  constructor(draw) {
    this.draw = draw;
    this.chart = new Chart("chart", draw);
    this.before = new Chart("chart-before", draw);
    this.after = new Chart("chart-after", draw);
  }

  /** Those that are shown. */
  get shown() {
    return this.played ? [this.before, this.after] : [this.chart];
  }

  /** How far it is moved, in words and as the server reads it. */
  get words() {
    const { shift } = this;
    const sign = shift < 0 ? "-" : "+";
    return Math.abs(shift) % STEP === 0 && Math.abs(shift) >= 1000 ? `${sign}${Math.abs(shift) / 1000}s` : `${sign}${Math.abs(shift)}ms`;
  }

  /** Nothing is moved, and nothing was played. */
  leaves() {
    [this.moving, this.shift, this.error, this.played] = [null, 0, "", null];
    this.draw();
  }

  /** @param {number} ms */
  moves(ms) {
    this.shift = Math.max(-FARTHEST, Math.min(FARTHEST, ms));
    this.error = "";
    this.draw();
  }
}

/** Whether a message of it can be moved: nobody works on at its end, and it is Midturn's own to play. @param {Page} page */
export function canPlay({ watched, isJoined }) {
  return watched !== null && !isJoined && !Object.values(watched.whole.view.agents).some(isWorking);
}

/**
 * The message of this key, if it can be moved.
 * @param {Page} page
 * @param {Chart} chart
 * @param {string} key
 * @returns {LetterDrawn | undefined}
 */
export function movable(page, chart, key) {
  const letter = key.startsWith("l") ? chart.picture.letters[Number(key.slice(1))] : undefined;
  return letter?.urgency && canPlay(page) && chart.id !== "chart-after" ? letter : undefined;
}

/**
 * A message is taken up, to be moved.
 * @param {Page} page
 * @param {Chart} chart
 * @param {string} key
 */
export function takes(page, chart, key) {
  const letter = movable(page, chart, key);
  const { timelines } = page;
  if (!letter || timelines.isAsking) return false;
  [timelines.moving, timelines.shift, timelines.error] = [{ key, id: letter.id, says: letter.says }, 0, ""];
  page.say("The message is taken up. Left and right move it, Enter plays, Escape leaves it where it was");
  return true;
}

/**
 * A key, while a message is moved. `false`: it is for nothing here.
 * @param {Page} page
 * @param {KeyboardEvent} event
 */
export function movesBy(page, { key, shiftKey }) {
  const { timelines } = page;
  const step = shiftKey ? LEAP : STEP;
  if (key === "ArrowLeft" || key === "ArrowRight") {
    timelines.moves(timelines.shift + (key === "ArrowLeft" ? -step : step));
    page.say(`Moved by ${timelines.words}`);
  } else if (key === "Enter") void plays(page);
  else if (key === "Escape") {
    timelines.moving = null;
    timelines.moves(0);
    page.say("It is where it was");
  } else return false;
  return true;
}

/**
 * A message is pulled by a pointer, and the session is played once that lets go.
 * @param {Page} page
 * @param {Chart} chart
 * @param {string} key
 * @param {PointerEvent} begun
 */
export function pulls(page, chart, key, begun) {
  const letter = movable(page, chart, key);
  const { axis } = chart;
  if (!letter || !axis || begun.button !== 0) return;
  const { timelines } = page;
  const ends = new AbortController();
  let isMoving = false;
  const listen = { signal: ends.signal };
  addEventListener("pointermove", (event) => {
    const far = event.clientX - begun.clientX;
    if (!isMoving && Math.abs(far) < MOVES) return;
    isMoving ||= takes(page, chart, key);
    const micros = axis.at(letter.from + far / chart.k) - axis.at(letter.from);
    if (isMoving) timelines.moves(Math.round(micros / 1000 / GRAIN) * GRAIN);
  }, listen);
  addEventListener("pointerup", () => {
    ends.abort();
    if (isMoving && timelines.moving) void plays(page);
  }, listen);
  addEventListener("pointercancel", () => {
    ends.abort();
    if (isMoving) timelines.leaves();
  }, listen);
}

/** Asks the server to play it. @param {Page} page */
export async function plays(page) {
  const { timelines, watched } = page;
  const { moving } = timelines;
  if (!moving || !watched || timelines.isAsking) return;
  if (timelines.shift === 0) return page.say("It is where it was: move it first");
  timelines.isAsking = true;
  page.say("Playing it again …");
  try {
    const answer = await page.server().post("replays", { [watched.kind]: watched.id, shift: [`${moving.id}=${timelines.words}`] });
    if (watched !== page.watched) return;
    const { calls, files, tokens } = answer.spared;
    timelines.played = { before: folded(answer.before.events), after: folded(answer.after.events), changes: answer.changes, calls, files, tokens };
    timelines.moving = null;
    page.say(["Played", ...answer.changes].join(". "));
  } catch (error) {
    timelines.error = error instanceof Refused ? error.detail || why(error) : why(error);
    page.say(timelines.error);
  } finally {
    timelines.isAsking = false;
    page.draw();
  }
}

/** @param {any[]} events */
function folded(events) {
  const session = new Session();
  for (const event of events) session.told(event);
  return session;
}
