// Which rows of a conversation are in the page: with many elements in it typing is slow.

/** So many rows at a time. */
const ROWS_MAX = 300;

/** So many elements in them; with those beside them there are 5,000. */
const ELEMENTS_MAX = 2_500;

/** @typedef {{size: () => number}} Sized of about so many elements */

/**
 * How many rows fit, from that one on, forwards or backwards: one at least, where there is one.
 * @param {Sized[]} rows
 * @param {number} from
 * @param {1 | -1} by
 */
export function fits(rows, from, by) {
  let [count, room] = [0, ELEMENTS_MAX];
  for (let at = from; at >= 0 && at < rows.length && count < ROWS_MAX; at += by) {
    room -= rows[at].size();
    if (room < 0 && count > 0) break;
    count += 1;
  }
  return count;
}

/**
 * Where the rows begin that are shown up to `end`, and up to where they are shown after a step back or on. A step back
 * leaves half of them where they are.
 * @param {Sized[]} rows
 * @param {number} end
 */
export function part(rows, end) {
  const begin = end - fits(rows, end - 1, -1);
  const older = () => Math.max(begin + Math.floor((end - begin) / 2), fits(rows, 0, 1));
  return { begin, older, newer: () => end + fits(rows, end, 1) };
}
