// A patch as `git diff` writes it, line by line: what each line is, in which file and at which number
// (crates/view/src/patch.rs).

import { oneLine, visible } from "./words/clean.js";

/**
 * A line of code has a number, and a file if that is known.
 * @typedef {"file" | "text" | "kept" | "removed" | "added"} Kind
 * @typedef {{kind: Kind, text: string, number?: number, file?: string}} Row
 * @typedef {{file: string, side: "old" | "new", line: number, code: string}} Place
 * @typedef {{rows: Row[], left_out: number}} Patch
 */

/** So many lines of a patch are read; the rest is counted. */
const ROWS_MAX = 20_000;

/** How many characters of a line, and of a file's name, are kept. */
const [LINE_MAX, NAME_MAX] = [2_000, 300];

/**
 * @param {string} text
 * @returns {Patch}
 */
export function readPatch(text) {
  const all = text === "" || text === "\n" ? [] : text.replace(/\n$/, "").split("\n");
  const lines = all.slice(0, ROWS_MAX);
  const reader = new Reader();
  for (let at = 0; at < lines.length; ) {
    const names = after(lines[at] ?? "", "diff --git ");
    if (names === undefined) reader.line(lines[at++] ?? "");
    else at = reader.file(names, lines, at + 1);
  }
  return { rows: reader.rows, left_out: all.length - lines.length };
}

/**
 * The line of code in a row, if it is one and its file is known.
 * @param {Row | undefined} row
 * @returns {Place | undefined}
 */
export function placeOf(row) {
  if (row?.file === undefined || row.number === undefined) return undefined;
  return { file: row.file, side: row.kind === "removed" ? "old" : "new", line: row.number, code: row.text };
}

class Reader {
  /** @type {Row[]} */
  rows = [];
  /** @type {string | undefined} */
  #file = undefined;
  /** The hunk that is read: the numbers of its next lines, in the old file and in the new one, and how many more it has. */
  #hunk = { at: [0, 0], left: [0, 0] };

  /**
   * What is said of a file before its hunks becomes its heading; where its lines begin.
   * @param {string} names
   * @param {string[]} lines
   * @param {number} from
   */
  file(names, lines, from) {
    let to = from;
    while (to < lines.length && !/^(diff --git |@@ )/.test(lines[to] ?? "")) to += 1;
    const { path, notes, odd } = heading(names, lines.slice(from, to));
    this.#file = shortened(oneLine(path), NAME_MAX);
    this.#hunk = { at: [0, 0], left: [0, 0] };
    const said = notes.length > 0 ? ` (${oneLine(notes.join(", "))})` : "";
    this.rows.push({ kind: "file", text: `${this.#file}${said}` });
    for (const line of odd) this.rows.push({ kind: "text", text: inert(line) });
    return to;
  }

  /** @param {string} line */
  line(line) {
    const hunk = hunkOf(line);
    if (hunk) this.#hunk = hunk;
    const { at: [old, now] } = this.#hunk;
    const kind = hunk ? undefined : this.#next(line);
    if (!kind) this.rows.push({ kind: "text", text: inert(line) });
    else this.rows.push({ kind, text: inert(line.slice(1)), number: kind === "removed" ? old : now, file: this.#file });
  }

  /**
   * What a line is, as long as the hunk lasts.
   * @param {string} line
   * @returns {"kept" | "removed" | "added" | undefined}
   */
  #next(line) {
    const { at, left } = this.#hunk;
    const [kind, sides] = of(line);
    if (!kind || sides.some((side) => left[side] === 0)) return undefined;
    for (const side of sides) [at[side], left[side]] = [(at[side] ?? 0) + 1, (left[side] ?? 0) - 1];
    return kind;
  }
}

/**
 * @param {string} line
 * @returns {["kept" | "removed" | "added" | undefined, number[]]}
 */
function of(line) {
  if (line.startsWith("+")) return ["added", [1]];
  if (line.startsWith("-")) return ["removed", [0]];
  // Some programs leave out the space of an empty line.
  return line === "" || line.startsWith(" ") ? ["kept", [0, 1]] : [undefined, []];
}

/**
 * `@@ -1,2 +3,4 @@`: where a hunk begins and how long it is, in both files.
 * @param {string} line
 */
function hunkOf(line) {
  const found = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
  if (!found) return undefined;
  const [oldAt, oldLeft, newAt, newLeft] = found.slice(1).map((number) => Number(number ?? "1"));
  const all = [oldAt ?? 0, oldLeft ?? 0, newAt ?? 0, newLeft ?? 0];
  if (all.some((number) => number > 0xffff_ffff)) return undefined;
  return { at: [oldAt ?? 0, newAt ?? 0], left: [oldLeft ?? 0, newLeft ?? 0] };
}

/**
 * A file's name, what was done to it, and the lines that say neither.
 * @param {string} names
 * @param {string[]} said
 */
function heading(names, said) {
  const half = Math.floor(names.length / 2);
  const [a, b] = [after(names.slice(0, half), "a/"), after(names.slice(half + 1), "b/")];
  const found = { path: a !== undefined && a === b ? a : names, notes: /** @type {string[]} */ ([]), odd: /** @type {string[]} */ ([]) };
  let mode = "";
  for (const line of said) {
    const to = after(line, "rename to ", "copy to ") ?? after(line, "+++ b/", "--- a/")?.replace(/\t+$/, "");
    const [was, copy, old, now] = ["rename from ", "copy from ", "old mode ", "new mode "].map((word) => after(line, word));
    if (to !== undefined) found.path = to;
    else if (was !== undefined) found.notes.push(`was ${was}`);
    else if (copy !== undefined) found.notes.push(`copy of ${copy}`);
    else if (old !== undefined) mode = old;
    else if (now !== undefined) found.notes.push(`mode ${mode} to ${now}`);
    else note(line, found);
  }
  return found;
}

/**
 * @param {string} line
 * @param {{notes: string[], odd: string[]}} found
 */
function note(line, { notes, odd }) {
  const how = /^(new file|deleted file)/.exec(line)?.[1];
  if (how) notes.push(how);
  else if (/^(Binary files |GIT binary patch)/.test(line)) notes.push("binary");
  else if (!/^(index |similarity index |(\+\+\+|---) \/dev\/null)/.test(line)) odd.push(line);
}

/**
 * What stands behind the first of these words that a line begins with.
 * @param {string} line
 * @param {string[]} words
 */
function after(line, ...words) {
  const word = words.find((one) => line.startsWith(one));
  return word === undefined ? undefined : line.slice(word.length);
}

/** A line with what acts or hides in it named, for a person decides on it; of a long one the beginning. @param {string} line */
function inert(line) {
  return visible(shortened(line.replace(/\r$/, ""), LINE_MAX));
}

/**
 * So many characters of a text, and a sign where it goes on.
 * @param {string} text
 * @param {number} most
 */
export function shortened(text, most) {
  if (text.length <= most) return text;
  // A character is two units of UTF-16 at most, and the text may be long.
  const first = [...text.slice(0, 2 * most + 2)];
  return first.length <= most ? text : `${first.slice(0, most).join("")}…`;
}
