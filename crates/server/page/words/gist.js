/** Texts and calls on one short line (crates/view/src/words.rs). */

import { characters, floor, isBlank } from "../fold/text.js";
import { clean, visible } from "./clean.js";

/** How many characters of a text are shown. */
const SHOWN = 100;

/** How many bytes of a text are looked at for that: lines are made often, and of large texts. */
const SEEN = 8 * 1024;

/** How many characters are shown of what a person has to decide on: its head and its tail. */
const [HEAD, TAIL] = [400, 100];

/**
 * The first line that says something, at most 100 characters, nothing in it that acts.
 * @param {string} text
 */
export function short(text) {
  return first(text, clean);
}

/**
 * What a call is about: its command, its file, or else the first text in its arguments.
 * @param {unknown} input
 */
export function gist(input) {
  const main = field(input, ["command", "path", "file_path", "pattern", "to", "host", "name"]);
  const text =
    main ??
    sorted(input)
      .map(([, value]) => value)
      .find(isText);
  const gist = text === undefined ? "" : first(text, visible);
  // What the model says it is for stands behind what it is, never in its place.
  const purpose = main === undefined ? "" : short(field(input, ["description"]) ?? "");
  return purpose ? `${gist} (${purpose})` : gist;
}

/**
 * A call that a person decides on: the tool, and all that it is about.
 * @param {string} name
 * @param {unknown} input
 */
export function asked(name, input) {
  return `${short(name)}: ${decided(input)}`;
}

/**
 * All that a person decides on of a call's arguments, on one line.
 * @param {unknown} input
 */
export function decided(input) {
  return whole(field(input, ["command", "path", "file_path"]) ?? json(input));
}

/**
 * A text on one line, its line ends visible. Of a long one the middle is left out, and how much that is: what a command
 * does may stand at its end.
 * @param {string} text
 */
export function whole(text) {
  const shown = visible(trim(text)).replaceAll("\n", "⏎");
  const left = characters(shown) - HEAD - TAIL;
  if (left <= 0) return shown;
  // A character is two units of UTF-16 at most, and the text may be long.
  const first = [...shown.slice(0, 2 * HEAD)].slice(0, HEAD).join("");
  const last = [...shown.slice(-2 * TAIL)].slice(-TAIL).join("");
  return `${first} [… ${left} characters: \`midturn approvals\` shows them …] ${last}`;
}

/**
 * @param {string} text
 * @param {(text: string) => string} inert
 */
function first(text, inert) {
  const seen = text.slice(0, floor(text, SEEN));
  const lines = inert(seen)
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const chars = [...(lines[0] ?? "")];
  const isWhole = chars.length <= SHOWN && lines.length < 2 && seen.length === text.length;
  return chars.slice(0, SHOWN).join("") + (isWhole ? "" : "…");
}

/**
 * The first of these fields that is a text.
 * @param {unknown} input
 * @param {string[]} names
 */
function field(input, names) {
  const fields = new Map(sorted(input));
  return names.map((name) => fields.get(name)).find(isText);
}

/**
 * An object's fields, in their order as everybody else has them: by their bytes.
 * @param {unknown} input
 * @returns {[string, unknown][]}
 */
function sorted(input) {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return [];
  return Object.entries(input).sort(([a], [b]) => order(a, b));
}

/**
 * @param {string} a
 * @param {string} b
 */
function order(a, b) {
  const [left, right] = [[...a], [...b]];
  const place = left.findIndex((char, at) => char !== right[at]);
  if (place < 0) return left.length - right.length;
  return (left[place]?.codePointAt(0) ?? 0) - (right[place]?.codePointAt(0) ?? -1);
}

/**
 * @param {unknown} value
 * @returns {value is string}
 */
function isText(value) {
  return typeof value === "string";
}

/**
 * A value as compact JSON.
 * @param {unknown} value
 * @returns {string}
 */
function json(value) {
  if (Array.isArray(value)) return `[${value.map(json)}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value ?? null);
  return `{${sorted(value).map(([name, one]) => `${JSON.stringify(name)}:${json(one)}`)}}`;
}

/**
 * Without the white space around it, by Unicode's notion of that.
 * @param {string} text
 */
export function trim(text) {
  let [from, to] = [0, text.length];
  while (from < to && isBlank(text.charAt(from))) from += 1;
  while (from < to && isBlank(text.charAt(to - 1))) to -= 1;
  return text.slice(from, to);
}
