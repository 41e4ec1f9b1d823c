/**
 * Numbers as people read them at a glance (crates/view/src/figures.rs). What is left out is cut off, not rounded:
 * nothing is said to be more than it is.
 */

const SECOND = 1e6;

/** What stands behind a number that was divided by a thousand so often. */
const THOUSANDS = ["k", "M", "G", "T", "P"];

/**
 * How many: `812`, `8.1k`, `12.0k`, `1.2M`.
 * @param {number} number
 */
export function count(number) {
  return thousands(number)?.join("") ?? String(number);
}

/**
 * How many bytes: `812 B`, `3.1 kB`, `2.0 MB`.
 * @param {number} number
 */
export function bytes(number) {
  return `${thousands(number)?.join(" ") ?? `${number} `}B`;
}

/**
 * A number of a thousand or more with one decimal, and its unit.
 * @param {number} number
 * @returns {[string, string] | null}
 */
function thousands(number) {
  const power = Math.floor((String(number).length - 1) / 3);
  const unit = THOUSANDS[power - 1];
  if (!unit) return null;
  return [cut(number, 1000 ** power), unit];
}

/**
 * How long something has run, as a clock that goes on: `0:12`, `1:04`, `1:02:03`, `3d 4h`.
 * @param {number} micros
 */
export function clock(micros) {
  const seconds = Math.floor(micros / SECOND);
  const [minutes, hours, days] = [60, 3600, 86_400].map((unit) => Math.floor(seconds / unit));
  const two = (/** @type {number} */ number) => String(number % 60).padStart(2, "0");
  if (days) return `${days}d ${(hours ?? 0) % 24}h`;
  if (hours) return `${hours}:${two(minutes ?? 0)}:${two(seconds)}`;
  return `${minutes}:${two(seconds)}`;
}

/**
 * How long something took: `34 ms`, `1.2 s`, `2 min`, `5 h`, `3 d`.
 * @param {number} micros
 */
export function took(micros) {
  const seconds = Math.floor(micros / SECOND);
  if (seconds < 1) return `${Math.floor(micros / 1000)} ms`;
  if (seconds < 60) return `${cut(micros, SECOND)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/**
 * A number in this unit with one decimal.
 * @param {number} number
 * @param {number} unit a power of ten
 */
function cut(number, unit) {
  const tenths = Math.floor(number / (unit / 10));
  return `${Math.floor(tenths / 10)}.${tenths % 10}`;
}
