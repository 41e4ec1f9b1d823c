// How a timeline is looked at: how near, from where on, and what of it stands in the page. Nothing is drawn here.

import { cells } from "./fold/picture.js";

/**
 * @import { Axis } from "./fold/axis.js"
 * @import { Drawn, LaneDrawn, LetterDrawn, MarkDrawn, Picture } from "./fold/picture.js"
 * @import { Session } from "./fold.js"
 */

/** What stands above a lane's bars, a row of bars, between two lanes, a bar, a sign's radius: in pixels, as in the SVG. */
export const [STRIP, ROW, GAP, BAR, SIGN] = [22, 24, 8, 20, 8];

/** The height of the instants above the lanes, in pixels. */
export const HEAD = 26;

/** Left of all that is drawn, and right of it, where the last instant is written; in pixels. */
const [PAD, END] = [16, 56];

/** A picture is made anew at most so often. */
const ANEW_MS = 1000;

/** And not while one looks nearer or farther. */
const REST_MS = 300;

/** How near one may look, and how wide the whole may get, in pixels. */
const [NEAREST, WIDEST] = [16, 4_000_000];

/** One step of a button or a key. */
const STEP = 1.5;

/** What of each is drawn at most; what is too narrow for that is drawn together. */
const BARS_MAX = 240;
const MARKS_MAX = 100;
const LETTERS_MAX = 100;

/** So narrow bars, in pixels, are drawn together with those beside them. */
const NARROW = 4;

/** So far apart are written instants, and what tears a picture, in pixels. */
const [TICKS, TEARS] = [72, 72];

/** So near its end a picture follows what happens, in pixels. */
const NEAR = 24;

/** @typedef {{key: string, what: "bar" | "letter" | "mark", lane: number, x: number, to: number, nth: number, says: string}} Stop */
/** @typedef {{key: string, from: number, to: number, many: number, bar: Drawn, says: string}} BarShown */
/** @typedef {{key: string, x: number, many: number, mark: MarkDrawn, says: string}} MarkShown */
/** @typedef {{key: string, letter: LetterDrawn, many: number, says: string}} LetterShown */
/**
 * What stands in the page.
 * @typedef {{from: number, to: number, first: number, last: number, bars: BarShown[], marks: MarkShown[], letters: LetterShown[],
 *   ticks: {x: number, text: string}[], cuts: number[], lives: number[]}} Seen
 */

/** A timeline that is looked at. */
export class Chart {
  /** Pixels to a unit. */
  k = 1;
  /** It shows the end, and what is added there. */
  follows = true;
  /** Where one has scrolled to, and how much one sees, in pixels. */
  left = 0;
  top = 0;
  wide = 800;
  high = 400;
  /** @type {number | null} where one is to be scrolled to once it is drawn */
  wants = null;
  /** @type {number | null} */
  wantsTop = null;
  /** What one is at by the keyboard, and what one points at. */
  at = "";
  over = "";
  /** What one is at gets the focus once it is drawn. */
  takesFocus = false;
  /** @type {Picture} */
  picture = { width: 0, lanes: [], bars: [], letters: [], marks: [], ticks: [], cuts: [], lives: [], left_out: 0, beyond: 0 };
  /** @type {Axis | null} */
  axis = null;
  /** @type {number[]} where each lane begins, and where the last one ends */
  tops = [0];
  /** How often a picture was made. */
  version = 0;
  /** @type {Session | null} */
  #of = null;
  #seq = -1;
  #madeAt = -Infinity;
  /** @type {Stop[][] | null} by lane */
  #stops = null;
  #isDue = false;
  #zoomedAt = -Infinity;
  /** What was brought into sight last, in units, and how much one saw then. */
  #kept = { x: NaN, wide: 0 };

  /**
   * @param {string} id of its element
   * @param {() => void} draw
   */
  constructor(id, draw) {
    this.id = id;
    this.draw = draw;
  }

  /**
   * Makes the picture anew where there is something new, at most once a second.
   * @param {Session} session
   * @param {number} now in microseconds; 0: nothing goes on
   */
  look(session, now) {
    const isOther = this.#of !== session;
    if (!isOther && session.view.seq === this.#seq && now === 0) return;
    const wait = Math.max(this.#madeAt + ANEW_MS, this.#zoomedAt + REST_MS) - performance.now();
    if (!isOther && wait > 0) return this.#later(wait);
    const { picture, axis } = session.drawn(0, now);
    [this.#of, this.#seq, this.#madeAt, this.#stops] = [session, now > 0 ? -1 : session.view.seq, performance.now(), null];
    [this.picture, this.axis] = [picture, axis];
    this.tops = [0];
    for (const lane of picture.lanes) this.tops.push((this.tops.at(-1) ?? 0) + height(lane));
    this.version += 1;
  }

  /** @param {number} ms */
  #later(ms) {
    if (this.#isDue) return;
    this.#isDue = true;
    setTimeout(() => {
      this.#isDue = false;
      this.draw();
    }, ms);
  }

  /** How wide it is, and how high, in pixels. */
  get width() {
    return Math.ceil(this.picture.width * this.k) + PAD + END;
  }

  get height() {
    return this.tops.at(-1) ?? 0;
  }

  /** @param {number} x in units */
  x(x) {
    return PAD + Math.round(x * this.k);
  }

  /** What stands at a place, in units. @param {number} place in pixels */
  unit(place) {
    return (place - PAD) / this.k;
  }

  /**
   * Where it has moved to is to be seen; where it stays one may look away.
   * @param {number} x in units
   */
  keeps(x) {
    if (x === this.#kept.x && this.wide === this.#kept.wide) return;
    [this.#kept, this.follows] = [{ x, wide: this.wide }, false];
    const place = this.x(x);
    if (place < this.left + PAD || place > this.left + this.wide - PAD) this.#goesTo(place - this.wide / 3);
  }

  /** The middle of the strip above a lane's bars. @param {number} lane */
  strip(lane) {
    return (this.tops[lane] ?? 0) + STRIP / 2;
  }

  /**
   * Looks nearer, or from farther away; what is so far from the left of what one sees stays there, in pixels.
   * @param {number} by
   * @param {number} [about]
   */
  zoom(by, about = this.#about()) {
    const { width } = this.picture;
    const least = Math.min(1, (this.wide - PAD - END) / Math.max(width, 1));
    const before = this.k;
    this.#zoomedAt = performance.now();
    this.k = Math.max(least, Math.min(before * by, NEAREST, Math.max(1, WIDEST / Math.max(width, 1))));
    const x = (this.left + about - PAD) * (this.k / before);
    this.#goesTo(x + PAD - about);
    this.draw();
  }

  /**
   * One is to be scrolled there: what is seen there is drawn with the next frame, not with the one after it.
   * @param {number} left
   */
  #goesTo(left) {
    this.left = Math.max(0, Math.min(Math.round(left), this.width - this.wide));
    this.wants = this.left;
  }

  /** What stays where it is: what one is at, the end that is followed, or else the middle. */
  #about() {
    const at = this.stop(this.at)?.x ?? this.#kept.x;
    const place = this.x(at) - this.left;
    if (place >= 0 && place <= this.wide) return place;
    return this.follows ? this.wide : this.wide / 2;
  }

  nearer() {
    this.zoom(STEP);
  }

  farther() {
    this.zoom(1 / STEP);
  }

  /** All of it at once, as far as it is not smaller than small. */
  whole() {
    this.zoom(0);
  }

  /**
   * One has scrolled, or the window has changed.
   * @param {HTMLElement} box
   * @param {number} beside how much of it the names take
   */
  measures(box, beside) {
    const before = [this.left, this.top, this.wide, this.high];
    [this.left, this.top] = [box.scrollLeft, box.scrollTop];
    [this.wide, this.high] = [Math.max(100, box.clientWidth - beside), Math.max(100, box.clientHeight - HEAD)];
    this.follows = box.scrollLeft + box.clientWidth >= box.scrollWidth - NEAR;
    return before.some((one, nth) => one !== [this.left, this.top, this.wide, this.high][nth]);
  }

  /** What is seen, in steps, so that not every pixel is drawn anew: half a window beside it is drawn, too. */
  window() {
    const [step, down] = [this.wide / 4, this.high / 4];
    const [left, top] = [Math.floor(this.left / step) * step, Math.floor(this.top / down) * down];
    return { left: left - step, right: left + this.wide + 2 * step, top: top - down, bottom: top + this.high + 2 * down };
  }

  /** What of it stands in the page. @returns {Seen} */
  seen() {
    const { left, right, top, bottom } = this.window();
    const [from, to] = [(left - PAD) / this.k, (right - PAD) / this.k];
    const first = Math.max(0, this.tops.findLastIndex((one) => one <= top));
    const below = this.tops.findIndex((one) => one >= bottom);
    const last = below < 0 ? this.tops.length - 1 : below;
    const seen = { from, to, first, last };
    const { ticks, cuts, lives } = this.picture;
    const isIn = (/** @type {number} */ x) => x >= from && x <= to;
    const middles = cuts.map(([from, to]) => (from + to) / 2);
    return {
      ...seen,
      bars: this.#within(BARS_MAX, (narrow) => this.#bars(seen, narrow)),
      marks: this.#within(MARKS_MAX, (narrow) => this.#marks(seen, narrow)),
      letters: this.#within(LETTERS_MAX, (narrow) => this.#letters(seen, narrow)),
      ticks: apart(ticks, ({ x }) => x * this.k, TICKS).filter(({ x }) => isIn(x)),
      cuts: apart(middles, (x) => x * this.k, TEARS).filter(isIn),
      lives: apart(lives, (x) => x * this.k, NARROW).filter(isIn),
    };
  }

  /**
   * As many as there may be: what is narrower is drawn together, until that is so.
   * @template T
   * @param {number} most
   * @param {(narrow: number) => T[]} all
   */
  #within(most, all) {
    for (let narrow = NARROW; narrow <= 1024; narrow *= 2) {
      const list = all(narrow);
      if (list.length <= most) return list;
    }
    return all(2048).slice(-most);
  }

  /**
   * @param {{from: number, to: number, first: number, last: number}} seen
   * @param {number} narrow
   */
  #bars({ from, to, first, last }, narrow) {
    /** @type {BarShown[]} */
    const all = [];
    /** @type {Map<number, BarShown>} the last one of each row, where that is narrow */
    const open = new Map();
    this.picture.bars.forEach((bar, nth) => {
      const key = `b${nth + this.picture.left_out}`;
      const isAt = key === this.at;
      if (!isAt && (bar.to < from || bar.from > to || bar.lane < first || bar.lane > last)) return;
      const row = bar.lane * 4 + bar.row;
      const isNarrow = !isAt && (bar.to - bar.from) * this.k < narrow;
      const before = open.get(row);
      if (isNarrow && before && (bar.from - before.to) * this.k < narrow) {
        before.to = Math.max(before.to, bar.to);
        before.many += 1;
        before.says = together(before.many, before.bar.says, bar.says);
        return;
      }
      const shown = { key, from: bar.from, to: bar.to, many: 1, bar, says: bar.says };
      if (isNarrow) open.set(row, shown);
      else open.delete(row);
      all.push(shown);
    });
    return all;
  }

  /**
   * @param {{from: number, to: number, first: number, last: number}} seen
   * @param {number} narrow
   */
  #marks({ from, to, first, last }, narrow) {
    const room = Math.max(narrow, 2 * SIGN + 2) / this.k;
    /** @type {MarkShown[]} */
    const all = [];
    /** @type {Map<number, MarkShown>} the last one of each lane */
    const open = new Map();
    this.picture.marks.forEach((mark, nth) => {
      const key = `m${nth}`;
      if (key !== this.at && (mark.x < from || mark.x > to || mark.lane < first || mark.lane > last)) return;
      const before = open.get(mark.lane);
      if (before && mark.x - before.x < room) {
        before.many += 1;
        before.says = together(before.many, before.mark.says, mark.says);
        // Where one is at one of them, all of them are that one.
        if (key === this.at) Object.assign(before, { key, says: mark.says });
        return;
      }
      const shown = { key, x: mark.x, many: 1, mark, says: mark.says };
      open.set(mark.lane, shown);
      all.push(shown);
    });
    return all;
  }

  /**
   * @param {{from: number, to: number, first: number, last: number}} seen
   * @param {number} narrow
   */
  #letters({ from, to, first, last }, narrow) {
    /** @type {Map<string, LetterShown>} */
    const all = new Map();
    this.picture.letters.forEach((letter, nth) => {
      const key = `l${nth}`;
      const [up, down] = [Math.min(letter.receiver, letter.sender ?? letter.receiver), Math.max(letter.receiver, letter.sender ?? 0)];
      const isSeen = letter.to >= from && letter.from <= to && down >= first && up <= last;
      if (key !== this.at && !isSeen) return;
      const near = [letter.from, letter.to].map((x) => Math.floor((x * this.k) / narrow));
      const place = key === this.at ? key : [letter.sender, letter.receiver, letter.urgency, ...near].join();
      const before = all.get(place);
      if (!before) all.set(place, { key, letter, many: 1, says: letter.says });
      else Object.assign(before, { many: before.many + 1, says: together(before.many + 1, before.letter.says, letter.says) });
    });
    return [...all.values()];
  }

  // ── By the keyboard ──

  /** All that one can be at, by lane, along time. */
  get stops() {
    if (this.#stops) return this.#stops;
    const { bars, letters, marks, left_out } = this.picture;
    /** @type {Stop[][]} */
    const lanes = this.picture.lanes.map(() => []);
    bars.forEach(({ lane, from, to, says }, nth) => lanes[lane]?.push({ key: `b${nth + left_out}`, what: "bar", lane, x: from, to, nth, says }));
    letters.forEach(({ receiver: lane, from, to, says }, nth) => lanes[lane]?.push({ key: `l${nth}`, what: "letter", lane, x: from, to, nth, says }));
    marks.forEach(({ lane, x, says }, nth) => lanes[lane]?.push({ key: `m${nth}`, what: "mark", lane, x, to: x, nth, says }));
    for (const lane of lanes) lane.sort((a, b) => a.x - b.x || a.to - b.to);
    this.#stops = lanes;
    return lanes;
  }

  /**
   * @param {string} key
   * @returns {Stop | undefined}
   */
  stop(key) {
    const nth = Number(key.slice(1));
    const { bars, letters, marks, left_out } = this.picture;
    const bar = key.startsWith("b") ? bars[nth - left_out] : undefined;
    if (bar) return { key, what: "bar", lane: bar.lane, x: bar.from, to: bar.to, nth, says: bar.says };
    const letter = key.startsWith("l") ? letters[nth] : undefined;
    if (letter) return { key, what: "letter", lane: letter.receiver, x: letter.from, to: letter.to, nth, says: letter.says };
    const mark = key.startsWith("m") ? marks[nth] : undefined;
    return mark && { key, what: "mark", lane: mark.lane, x: mark.x, to: mark.x, nth, says: mark.says };
  }

  /**
   * Goes on along time, or to another lane, there to what is nearest.
   * @param {"ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown" | "Home" | "End"} key
   */
  goes(key) {
    const here = this.stop(this.at) ?? this.stops.flat()[0];
    if (!here) return;
    const to = this.#next(here, key) ?? here;
    this.at = to.key;
    this.takesFocus = true;
    this.reveals(to);
    this.draw();
  }

  /**
   * @param {Stop} here
   * @param {string} key
   */
  #next(here, key) {
    const lane = this.stops[here.lane] ?? [];
    const place = lane.findIndex((one) => one.key === here.key);
    if (key === "ArrowLeft") return lane[place - 1];
    if (key === "ArrowRight") return lane[place + 1];
    if (key === "Home") return lane[0];
    if (key === "End") return lane.at(-1);
    const lanes = key === "ArrowUp" ? this.stops.slice(0, here.lane).reverse() : this.stops.slice(here.lane + 1);
    const other = lanes.find(({ length }) => length > 0) ?? [];
    const far = (/** @type {Stop} */ one) => Math.max(0, one.x - here.x, here.x - one.to);
    return other.toSorted((a, b) => far(a) - far(b))[0];
  }

  /** One is to see it. @param {Stop} stop */
  reveals({ x, lane }) {
    const place = this.x(x);
    const isSeen = place >= this.left + PAD && place <= this.left + this.wide - 3 * PAD;
    if (!isSeen) this.#goesTo(place - this.wide / 2);
    const [top, bottom] = [this.tops[lane] ?? 0, this.tops[lane + 1] ?? 0];
    if (top < this.top) this.wantsTop = top;
    else if (bottom > this.top + this.high) this.wantsTop = bottom - this.high;
  }

  /**
   * Where the keyboard comes in: where one was, else at the first of what one sees.
   * @param {Seen} seen
   */
  entry({ bars, marks, letters }) {
    if (this.stop(this.at)) return this.at;
    const from = (this.left - PAD) / this.k;
    return (bars.find((bar) => bar.from >= from) ?? bars[0] ?? marks[0] ?? letters[0])?.key ?? "";
  }
}

/** How high a lane is, with what is between it and the next. @param {LaneDrawn} lane */
function height({ rows }) {
  return STRIP + rows * ROW + GAP;
}

/**
 * What several say that are drawn as one.
 * @param {number} many
 * @param {string} first
 * @param {string} last
 */
function together(many, first, last) {
  return `${many} of them stand here, too near each other to be drawn: from “${first}” to “${last}”`;
}

/**
 * Those that are so far from the one before.
 * @template T
 * @param {T[]} all
 * @param {(one: T) => number} place
 * @param {number} least
 */
function apart(all, place, least) {
  let last = -Infinity;
  return all.filter((one) => {
    if (place(one) - last < least) return false;
    last = place(one);
    return true;
  });
}

/**
 * As much of a text as takes so many columns: one that is longer ends in `…`. Nothing where not even two characters have room.
 * @param {string} text
 * @param {number} room
 */
export function fits(text, room) {
  if (cells(text) <= room) return text;
  if (room < 3) return "";
  let [left, shown] = [Math.floor(room) - 1, ""];
  for (const char of text) {
    left -= cells(char);
    if (left < 0) break;
    shown += char;
  }
  return `${shown}…`;
}
