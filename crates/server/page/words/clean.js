/**
 * Text of models, tools and names, made inert for a line of ours (crates/view/src/clean.rs). What they say as they work
 * is read for what it says, so what acts goes, whole sequences of it. What a person decides on is read for what it is,
 * so what hides in it is shown.
 */

/** A zero-width joiner makes one picture of several. */
const JOINER = "\u200d";

/** What is not seen, and changes what is: its order, its width, or what it is taken for. */
const HIDDEN =
  "\\u00ad\\u061c\\u180e\\ufeff\\u200b\\u200c\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f" +
  "\\ufe00-\\ufe0f\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}\\u{e0100}-\\u{e01ef}";

const CONTROL = "\\u0000-\\u001f\\u007f-\\u009f";
const HIDES = new RegExp(`[${CONTROL}${HIDDEN}${JOINER}]`, "u");
/** A tab alone changes nothing: most lines of code have no more. */
const ACTS = new RegExp(`(?!\\t)${HIDES.source}`, "u");
const HIDES_BUT_LINES = new RegExp(`(?![\\n\\t])${HIDES.source}`, "gu");

/** What a joiner before it makes a picture of. Letters that are joined stay letters. */
const PICTURE = /[\u2190-\u2bff\u{1f000}-\u{1faff}]/u;

/** What changes the colour of the picture before it. */
const SKIN = /[\u{1f3fb}-\u{1f3ff}]/u;

/**
 * Where a text is in a terminal's sequence: in none, behind an escape, in a sequence of control (`[`), in a command of
 * the system (`]`), in another string.
 * @typedef {'text' | 'escape' | 'more' | 'control' | 'command' | 'string'} Place
 */

/** @type {Record<string, Place>} what stands behind an escape and begins something longer */
const BEGINS = { "[": "control", "]": "command", P: "string", X: "string", "^": "string", _: "string" };

/**
 * A whole text, cleaned.
 * @param {string} text
 */
export function clean(text) {
  // A sequence that was never ended hides nothing beyond its line.
  return text.split("\n").map(cleanLine).join("\n");
}

/** @param {string} line */
function cleanLine(line) {
  if (!ACTS.test(line)) return line;
  /** @type {Place} */
  let place = "text";
  const page = new Page();
  for (const char of line) {
    const code = char.codePointAt(0) ?? 0;
    if (place === "text" && code >= 0x20) {
      page.print(char);
      continue;
    }
    if (place !== "command" && place !== "string") page.acts(char);
    place = next(place, char, code);
  }
  return page.shown;
}

/**
 * @param {Place} place
 * @param {string} char
 * @param {number} code
 * @returns {Place}
 */
function next(place, char, code) {
  if (code === 0x18 || code === 0x1a) return "text";
  if (code === 0x1b) return "escape";
  const is = (/** @type {number} */ from) => code >= from && code <= 0x7e;
  switch (place) {
    case "escape":
      if (!is(0x20)) return place;
      return is(0x30) ? (BEGINS[char] ?? "text") : "more";
    case "more":
      return is(0x30) ? "text" : place;
    case "control":
      return is(0x40) ? "text" : place;
    case "command":
      return code === 0x07 ? "text" : place;
    default:
      return place;
  }
}

/** What is shown of a line. */
class Page {
  shown = "";
  /** The line starts over with the next character. */
  #returned = false;
  /** The last character joins the next one to what is before it. */
  #joins = false;
  /** What is joined is left out, and what changes its colour with it. */
  #leftOut = false;

  /** @param {string} char */
  print(char) {
    if (char === JOINER) {
      this.#joins = true;
      return;
    }
    if (HIDES.test(char) || this.#isLeftOut(char)) return;
    if (this.#returned) this.shown = "";
    this.#returned = false;
    this.shown += char;
  }

  /** @param {string} char */
  acts(char) {
    if (char === "\t" && !this.#returned) this.shown += char;
    if (char === "\r") this.#returned = true;
  }

  /**
   * Whether it belongs to a picture of which only the first part is shown: terminals disagree on how wide the whole is.
   * @param {string} char
   */
  #isLeftOut(char) {
    const follows = this.#leftOut && SKIN.test(char);
    this.#leftOut = follows || (this.#joins && PICTURE.test(char));
    this.#joins = false;
    return this.#leftOut;
  }
}

/**
 * A name or a path: what acts or hides in it is named. Without line feeds, so that it can't look like a line of ours.
 * @param {string} text
 */
export function oneLine(text) {
  return visible(text).replaceAll("\n", "");
}

/**
 * A text that a person decides on: what acts or hides in it is named (`‹U+202E›`). Line feeds and tabs stay.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(HIDES_BUT_LINES, (char) => {
    const code = (char.codePointAt(0) ?? 0).toString(16).toUpperCase();
    return `‹U+${code.padStart(4, "0")}›`;
  });
}
