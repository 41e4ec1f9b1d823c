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

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * How many bytes a text has.
 * @param {string} text
 */
export function bytes(text) {
  return ENCODER.encode(text).length;
}

/**
 * How many characters a text has.
 * @param {string} text
 */
export function characters(text) {
  let count = text.length;
  // Of a pair of units only one counts.
  for (let at = 0; at < text.length; at++) if ((text.charCodeAt(at) & 0xfc00) === 0xd800) count -= 1;
  return count;
}

/**
 * Where a text is cut that is to have so many bytes at most: in units of UTF-16, between two characters.
 * @param {string} text
 * @param {number} most
 */
export function floor(text, most) {
  return ENCODER.encodeInto(text, new Uint8Array(most)).read;
}

/**
 * The end of a text that has so many bytes at most, cut between two characters.
 * @param {string} text
 * @param {number} most
 */
export function newest(text, most) {
  const all = ENCODER.encode(text);
  let from = Math.max(0, all.length - most);
  while (((all[from] ?? 0) & 0xc0) === 0x80) from += 1;
  return DECODER.decode(all.subarray(from));
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
