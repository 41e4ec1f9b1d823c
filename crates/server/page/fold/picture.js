/**
 * A timeline laid out from left to right (crates/view/src/timeline/picture.rs): the same picture, as JSON has it.
 */

import * as words from "../words/timeline.js";
import { Axis } from "./axis.js";

/**
 * @import { Bar, End, Kind, Letter, Mark, Moment, Timeline } from './timeline.js'
 * @import { Need } from './axis.js'
 * @import { Urgency } from './types.js'
 */

/** The name of a person's lane, and how a person is named who sends. */
const [YOU, USER] = ["you", "user"];

/** The coordinator's own word on the wire. */
const COORDINATOR = "coordinator";

/** How many characters of a name a bar makes room for. */
const LABEL = 10;

/** How wide a character is, in fifths of a unit. */
const CHARACTER = 36;

/** What is beside a name within its bar. */
const PADDING = 10;

/** The least room of anything that is drawn. */
const LEAST = 4;

/** The room that the sign of a mark needs. */
const SIGN = 20;

/** @typedef {{name: string, depth: number, rows: number}} LaneDrawn */
/** @typedef {{lane: number, row: number, from: number, to: number, kind: Kind, end: End, name: string, hides: number, says: string}} Drawn */
/**
 * @typedef {{id: string, sender: number | null, receiver: number, from: number, to: number, urgency: Urgency | null,
 *   point: string | null, is_back: boolean, says: string}} LetterDrawn
 */
/** @typedef {{lane: number, x: number, sign: string, is_point: boolean, says: string}} MarkDrawn */

/**
 * What is drawn. Widths are in units from the left, as whole numbers; rows and lanes are counted from the top.
 * @typedef {{width: number, lanes: LaneDrawn[], bars: Drawn[], letters: LetterDrawn[], marks: MarkDrawn[],
 *   ticks: {x: number, text: string}[], cuts: [number, number][], lives: number[], left_out: number, beyond: number}} Picture
 */

/**
 * All of it that goes on or comes after `from`, as it is `now`, both in microseconds; and where its moments stand.
 * @param {Timeline} timeline
 * @param {number} from
 * @param {number} at
 * @returns {{picture: Picture, axis: Axis}}
 */
export function laidOut(timeline, from, at) {
  const begin = { order: 0, at: from };
  const now = { order: Number.MAX_SAFE_INTEGER, at: Math.max(at, timeline.now.at, from) };
  const isIn = (/** @type {Moment} */ end) => end.at >= from;
  const bars = [...timeline.bars.values()].filter((bar) => isIn(bar.to ?? now));
  const letters = [...timeline.letters.values()].filter((letter) => isIn(arrival(letter, now)));
  const marks = [...timeline.marks.values()].filter((mark) => isIn(mark.at));
  const lives = timeline.lives.filter(isIn);
  const moments = [begin, now, ...bars.map((bar) => bar.from), ...bars.map((bar) => bar.to ?? now)];
  moments.push(...letters.map(({ sent }) => sent), ...letters.map((letter) => arrival(letter, now)));
  moments.push(...marks.map((mark) => mark.at), ...lives);
  // What began before the picture does begins with it.
  const axis = new Axis(
    moments.map((moment) => (moment.at < from ? begin : moment)),
    needs(bars, marks, now),
  );
  const you = letters.some((letter) => letter.from === USER) ? 1 : 0;
  const lanes = lanesOf(timeline, you, bars);
  const place = new Place(axis, begin, now, you, lanes);
  const picture = {
    width: axis.width,
    lanes,
    bars: bars.map((bar) => place.bar(bar)),
    letters: letters.map((letter) => place.letter(letter, timeline)),
    marks: marks.map((mark) => place.mark(mark)),
    ticks: axis.ticks(),
    cuts: axis.cuts,
    lives: lives.map((life) => axis.x(life)),
    left_out: timeline.leftOut + timeline.bars.size - bars.length,
    beyond: timeline.beyond,
  };
  return { picture, axis };
}

/**
 * @param {Timeline} timeline
 * @param {number} you how many lanes are before those of agents
 * @param {Bar[]} bars
 */
function lanesOf(timeline, you, bars) {
  /** @type {LaneDrawn[]} */
  const lanes = you > 0 ? [{ name: YOU, depth: 0, rows: 0 }] : [];
  for (const { name, depth } of timeline.lanes) lanes.push({ name, depth, rows: 1 });
  for (const bar of bars) {
    const lane = lanes[you + bar.lane];
    if (lane) lane.rows = Math.max(lane.rows, bar.row + 1);
  }
  return lanes;
}

/**
 * When a message is no longer on its way.
 * @param {Letter} letter
 * @param {Moment} now
 */
function arrival({ ahead, sent }, now) {
  if (ahead.type === "waits") return now;
  return ahead.type === "refused" ? sent : ahead.at;
}

/**
 * What needs room: names within their bars, and signs beside each other.
 * @param {Bar[]} bars
 * @param {Mark[]} marks
 * @param {Moment} now
 */
function needs(bars, marks, now) {
  /** @type {Need[]} */
  const needs = bars.map(({ name, from, to }) => {
    const wide = Math.floor((Math.min(cells(name), LABEL) * CHARACTER) / 5) + PADDING;
    return { from, to: to ?? now, room: Math.max(LEAST, wide) };
  });
  /** @type {Map<number, Moment>} */
  const next = new Map();
  for (const { lane, at } of marks.toReversed()) {
    needs.push({ from: at, to: next.get(lane) ?? now, room: SIGN });
    next.set(lane, at);
  }
  return needs;
}

/**
 * How many columns of a terminal a text takes, as far as that can be said: alphabets, signs and punctuation are narrow,
 * ideographs and pictures wide.
 * @param {string} text
 */
export function cells(text) {
  let cells = 0;
  for (const char of text) cells += char < "\u1100" || (char >= "\u2000" && char < "\u2e80") ? 1 : 2;
  return cells;
}

/** Where everything stands. */
class Place {
  /**
   * @param {Axis} axis
   * @param {Moment} begin
   * @param {Moment} now
   * @param {number} you
   * @param {LaneDrawn[]} lanes
   */
  constructor(axis, begin, now, you, lanes) {
    this.axis = axis;
    this.begin = begin;
    this.now = now;
    this.you = you;
    this.lanes = lanes;
  }

  /** @param {Moment} moment */
  x(moment) {
    return this.axis.x(moment.at < this.begin.at ? this.begin : moment);
  }

  /** @param {number} lane */
  name(lane) {
    return this.lanes[this.you + lane]?.name ?? "";
  }

  /**
   * @param {Bar} bar
   * @returns {Drawn}
   */
  bar(bar) {
    const { row, kind, end, name, hides } = bar;
    const [from, to] = [this.x(bar.from), this.x(bar.to ?? this.now)];
    const says = words.bar(bar, this.name(bar.lane), this.now);
    return { lane: this.you + bar.lane, row, from, to, kind, end, name, hides, says };
  }

  /**
   * @param {Letter} letter
   * @param {Timeline} timeline
   * @returns {LetterDrawn}
   */
  letter(letter, timeline) {
    const { id, ahead, urgency } = letter;
    // The coordinator's report on an agent has its name before the `#`.
    const about = letter.from === COORDINATOR && id.includes("#") ? id.slice(0, id.indexOf("#")) : letter.from;
    const place = timeline.placeOf(about);
    const agent = place === undefined ? null : this.you + place;
    return {
      id,
      sender: letter.from === USER && this.you > 0 ? 0 : agent,
      receiver: this.you + letter.to,
      from: this.x(letter.sent),
      to: this.x(arrival(letter, this.now)),
      urgency,
      point: ahead.type === "injected" ? ahead.point : null,
      is_back: ahead.type === "returned" || ahead.type === "refused",
      says: words.letter(letter, this.name(letter.to)),
    };
  }

  /**
   * @param {Mark} mark
   * @returns {MarkDrawn}
   */
  mark({ lane, at, kind }) {
    const is_point = kind.type === "injected";
    return { lane: this.you + lane, x: this.x(at), sign: words.sign(kind), is_point, says: words.mark(kind, this.name(lane)) };
  }
}
