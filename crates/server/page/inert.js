// Text of models, tools and names, made inert, as `crates/view/src/clean.rs` does for the terminal: what they
// say is read for what it says, so what acts goes. What a person decides on is read for what it is, so what
// hides in it is shown.

/** Not seen, and changes what is: its order, its width, or what it is taken for. */
const HIDDEN =
  "\\u00ad\\u061c\\u180e\\ufeff\\u200b\\u200c\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufe00-\\ufe0f\\ufff9-\\ufffb" +
  "\\u{e0000}-\\u{e007f}\\u{e0100}-\\u{e01ef}";

/** Controls other than tab and line feed. */
const CONTROLS = "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f";

/** A whole sequence for a terminal; one that never ends hides nothing beyond its line. */
const SEQUENCE = /\u001b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\u0007\u001b\n]*(?:\u0007|\u001b\\)?|[ -/]*[0-~]?)/gu;

const GOES = new RegExp(`[${HIDDEN}${CONTROLS}]`, "gu");
const HIDES = new RegExp(`[${HIDDEN}${CONTROLS}\\u200d]`, "gu");

/**
 * What a model or a tool said.
 * @param {string} text
 */
export function clean(text) {
  const whole = text.includes("\u001b") ? text.replace(SEQUENCE, "") : text;
  return (whole.includes("\r") ? whole.split("\n").map(lastVersion).join("\n") : whole).replace(GOES, "");
}

/**
 * A return starts the line over; before a line's end it is nothing.
 * @param {string} line
 */
function lastVersion(line) {
  const shown = line.replace(/\r+$/, "");
  return shown.slice(shown.lastIndexOf("\r") + 1);
}

/**
 * What a person decides on: what acts or hides in it is named (`‹U+202E›`). Line feeds and tabs stay.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(HIDES, (c) => `‹U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}›`);
}

/**
 * A name or a path, on one line.
 * @param {string} text
 */
export function oneLine(text) {
  return visible(text).replaceAll("\n", "");
}
