/**
 * From moments to places: how far from the left everything stands (crates/view/src/timeline/axis.rs, which says why).
 * All of it is whole numbers.
 */

import { instant } from "../words/timeline.js";

/** @import { Moment } from './timeline.js' */

/** How wide a usual step is, in units. */
const USUAL = 72;

/** How many steps are drawn as wide as that; more are drawn narrower. */
const ROOMY = 150;

/** How many steps something that needs room is looked at for. */
const LOOKED_AT = 64;

/** So much room a written instant needs. */
const TICK = 64;

/** What is shorter than this, in microseconds, has an order and no width of its own. */
const NOTHING = 1000;

/** That something needs so much room from one moment to another. */
/** @typedef {{from: Moment, to: Moment, room: number}} Need */

/**
 * Which of two moments comes first.
 * @param {Moment} a
 * @param {Moment} b
 */
export function order(a, b) {
  return a.order - b.order || a.at - b.at;
}

/** Where moments stand, from left to right. */
export class Axis {
  /** @type {number[]} */
  #places = [0];
  /** @type {[number, number][]} the steps that are shorter than they would be: from where to where */
  cuts = [];

  /**
   * @param {Moment[]} moments
   * @param {Need[]} needs what has its room
   */
  constructor(moments, needs) {
    const sorted = moments.toSorted(order);
    this.moments = sorted.filter((one, at) => at === 0 || order(one, /** @type {Moment} */ (sorted[at - 1])) !== 0);
    const lengths = this.moments.slice(1).map(({ at }, before) => Math.max(0, at - this.#moment(before).at));
    const widths = widthsOf(lengths);
    const steps = lengths.map((length) => stepOf(widths, length));
    for (const need of needs) this.#makesRoom(steps, need, widths.width);
    let x = 0;
    for (const { wide, isCut } of steps) {
      if (isCut) this.cuts.push([x, x + wide]);
      x += wide;
      this.#places.push(x);
    }
  }

  /** @param {number} at */
  #moment(at) {
    return /** @type {Moment} */ (this.moments[at]);
  }

  /** How wide all of it is. */
  get width() {
    return this.#places.at(-1) ?? 0;
  }

  /**
   * Where a moment stands that was among those it was made of.
   * @param {Moment} moment
   */
  x(moment) {
    return this.#places[first(this.moments, (known) => order(known, moment) < 0)] ?? this.width;
  }

  /** The instants that are written: the first of each that reads otherwise than the one before it, where that leaves room. */
  ticks() {
    /** @type {{x: number, text: string}[]} */
    const ticks = [];
    let before = -1;
    this.moments.forEach(({ at }, nth) => {
      const [x, last, isNew] = [this.#places[nth] ?? 0, ticks.at(-1), at > before];
      before = at;
      if (!isNew || (last && last.x + TICK > x)) return;
      const text = instant(at);
      if (text !== last?.text) ticks.push({ x, text });
    });
    return ticks;
  }

  /**
   * How far what was told up to a moment reaches, be it one of those that this was made of or not.
   * @param {Moment} moment
   */
  upTo(moment) {
    const told = this.#places[first(this.moments, (known) => order(known, moment) <= 0) - 1] ?? 0;
    return Math.max(told, this.xAt(moment.at));
  }

  /**
   * When it is at a place, between two moments as far as the place is between theirs; in microseconds.
   * @param {number} x
   */
  at(x) {
    const next = Math.min(Math.max(1, first(this.#places, (place) => place < x)), this.moments.length - 1);
    const [from, to] = [this.moments[next - 1], this.moments[next]];
    const [left, right] = [this.#places[next - 1] ?? 0, this.#places[next] ?? 0];
    if (!from || !to) return from?.at ?? to?.at ?? 0;
    const share = right > left ? Math.min(1, Math.max(0, (x - left) / (right - left))) : 1;
    return Math.round(from.at + share * (to.at - from.at));
  }

  /**
   * Where an instant stands, as far between two moments as it is between theirs.
   * @param {number} at
   */
  xAt(at) {
    const next = Math.min(Math.max(1, first(this.moments, (moment) => moment.at < at)), this.moments.length - 1);
    const [from, to] = [this.moments[next - 1], this.moments[next]];
    const [left, right] = [this.#places[next - 1] ?? 0, this.#places[next] ?? 0];
    if (!from || !to || to.at <= from.at) return right;
    return left + Math.min(1, Math.max(0, (at - from.at) / (to.at - from.at))) * (right - left);
  }

  /**
   * Widens the last step of what has too little room. What is narrow all over has less than it needs.
   * @param {{wide: number}[]} steps
   * @param {Need} need
   * @param {number} usual
   */
  #makesRoom(steps, { from, to, room }, usual) {
    const begin = first(this.moments, (known) => order(known, from) < 0);
    const end = Math.min(
      first(this.moments, (known) => order(known, to) < 0),
      steps.length,
    );
    const last = steps[end - 1];
    if (begin >= end || end - begin > LOOKED_AT || !last) return;
    const has = steps.slice(begin, end).reduce((sum, { wide }) => sum + wide, 0);
    const needs = Math.max(1, Math.floor((room * usual) / USUAL));
    if (has < needs) last.wide += needs - has;
  }
}

/**
 * How wide steps are: what is shorter than `least` has no width; `usual` is the usual step's length in microseconds.
 * @param {number[]} lengths
 */
function widthsOf(lengths) {
  const all = lengths.reduce((sum, length) => sum + length, 0);
  const least = Math.min(Math.max(Math.floor(all / 100), 1), NOTHING);
  const steps = lengths.filter((length) => length >= least).sort((a, b) => a - b);
  const usual = steps[Math.floor((steps.length * 3) / 4)] ?? 1;
  const width = Math.min(Math.max(Math.floor((USUAL * ROOMY) / Math.max(steps.length, 1)), 4), USUAL);
  return { least, usual, width };
}

/**
 * How wide a step is, and whether that is less than it should be.
 * @param {{least: number, usual: number, width: number}} widths
 * @param {number} length
 */
function stepOf({ least, usual, width }, length) {
  if (length < least) return { wide: 0, isCut: false };
  const wide = Math.floor((length * width) / usual);
  const narrowest = Math.max(Math.floor(width / 6), 1);
  return { wide: Math.min(Math.max(wide, narrowest), width * 4), isCut: wide > width * 4 };
}

/**
 * How many of a sorted list's first elements are so.
 * @template T
 * @param {T[]} all
 * @param {(one: T) => boolean} is
 */
function first(all, is) {
  let [from, to] = [0, all.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (is(/** @type {T} */ (all[middle]))) from = middle + 1;
    else to = middle;
  }
  return from;
}
