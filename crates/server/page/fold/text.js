/** Texts and times as the coordinator counts them: texts in bytes of UTF-8, times in whole microseconds. */

const SECOND = 1e6;

/**
 * How durations are written, the largest unit that fits first: the unit, its microseconds, whether it takes decimals.
 * @type {[string, number, boolean][]}
 */
const UNITS = [
  ["h", 3600 * SECOND, false],
  ["m", 60 * SECOND, false],
  ["s", SECOND, true],
  ["ms", 1000, true],
  ["us", 1, false],
];

/**
 * How many bytes a character has, by its first unit of UTF-16: the two of a pair have two each.
 * @param {number} unit
 */
function width(unit) {
  if (unit < 0x80) return 1;
  if (unit < 0x800) return 2;
  return unit >= 0xd800 && unit <= 0xdfff ? 2 : 3;
}

/**
 * How many bytes a text has.
 * @param {string} text
 */
export function bytes(text) {
  let count = 0;
  for (let at = 0; at < text.length; at++) count += width(text.charCodeAt(at));
  return count;
}

/**
 * How many characters a text has.
 * @param {string} text
 */
export function characters(text) {
  let count = text.length;
  for (let at = 0; at < text.length; at++) if (isHigh(text.charCodeAt(at))) count -= 1;
  return count;
}

/**
 * Where the character begins that has this byte: in units of UTF-16. The text's length, if it has not so many bytes.
 * @param {string} text
 * @param {number} byte
 */
export function floor(text, byte) {
  let count = 0;
  for (let at = 0; at < text.length;) {
    const unit = text.charCodeAt(at);
    const pair = isHigh(unit);
    count += pair ? 4 : width(unit);
    if (count > byte) return at;
    at += pair ? 2 : 1;
  }
  return text.length;
}

/**
 * The end of a text that has at most so many bytes, cut between two characters.
 * @param {string} text
 * @param {number} most
 */
export function newest(text, most) {
  let count = 0;
  let at = text.length;
  while (at > 0) {
    const pair = at > 1 && isHigh(text.charCodeAt(at - 2));
    count += pair ? 4 : width(text.charCodeAt(at - 1));
    if (count > most) break;
    at -= pair ? 2 : 1;
  }
  return text.slice(at);
}

/**
 * Whether it is the first of a pair.
 * @param {number} unit
 */
function isHigh(unit) {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/**
 * Whether a text says nothing. JavaScript's white space is not quite Unicode's: that has U+0085, and not U+FEFF.
 * @param {string} text
 */
export function isBlank(text) {
  return !/[^\s\x85]|\ufeff/.test(text);
}

/**
 * An instant in microseconds.
 * @param {number} seconds
 */
export function micros(seconds) {
  return Math.round(seconds * SECOND);
}

/**
 * How long it is from one instant to another, in microseconds; zero when that is not later.
 * @param {number} earlier
 * @param {number} later
 */
export function between(earlier, later) {
  return Math.max(0, micros(later) - micros(earlier));
}

/**
 * The instant a duration later.
 * @param {number} t
 * @param {string} span
 */
export function after(t, span) {
  return (micros(t) + spanMicros(span)) / SECOND;
}

/**
 * A duration as it is written: `250ms`, `1.5s`, `2m`, `1h`, `40us` or `0`.
 * @param {number} span in microseconds
 */
export function written(span) {
  if (span === 0) return "0";
  const unitOf = UNITS.find(([, size, decimals]) => (decimals ? span >= size : span % size === 0));
  const [unit, size] = unitOf ?? ["us", 1];
  const part = String(span % size)
    .padStart(String(size).length - 1, "0")
    .replace(/0+$/, "");
  return `${Math.floor(span / size)}${part && `.${part}`}${unit}`;
}

/**
 * The same, read.
 * @param {string} span
 */
export function spanMicros(span) {
  const [, number, unit] = /^([\d.]+)([a-z]*)$/.exec(span) ?? [];
  const size = UNITS.find(([name]) => name === unit)?.[1] ?? 0;
  return Math.round(Number(number ?? 0) * size);
}
