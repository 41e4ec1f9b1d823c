/**
 * What an agent is saying and what its calls print, until it is recorded as a whole: who joins in the middle gets it in
 * one piece (crates/core/src/rules/view/said.rs).
 */

import { bytes, newest } from "./text.js";

/** @import { Delta, Piece } from './types.js' */

/** So much of one reply's text, and of one reply's thinking, is kept; the newest, in bytes. */
const TEXT_MAX = 1024 * 1024;

/** So much of one call's output is kept, and of a setup's; the newest, in bytes. */
const OUTPUT_MAX = 64 * 1024;

/** How many texts and calls of one agent are followed at a time. */
const PIECES_MAX = 1024;

/** What may be told. What a newer Midturn tells besides says nothing to this one. */
const KNOWN = new Set(["text_delta", "thinking_delta", "call_delta", "tool_output", "setup_output"]);

/**
 * Whether it is a delta that is known here.
 * @param {{type: string}} delta
 */
export function isDelta(delta) {
  return KNOWN.has(delta.type);
}

/**
 * Takes a delta. `false`: it was told before.
 * @param {Piece[]} said
 * @param {Delta} delta
 */
export function says(said, delta) {
  const known = said.find((piece) => isOne(piece.whole, delta));
  if (known) return goesOn(known, delta);
  if ("text" in delta && delta.text === "") return false;
  if (said.length < PIECES_MAX) {
    const piece = { whole: { ...delta }, is_cut: false, rejoined: false };
    keepTheNewest(piece);
    said.push(piece);
  }
  return true;
}

/**
 * The reply that was under way is recorded, or will never be: only what calls print is left. Whose model is asked has
 * its folder ready.
 * @param {Piece[]} said
 */
export function replyEnds(said) {
  return said.filter(({ whole }) => whole.type === "tool_output");
}

/**
 * What is left when a call has ended.
 * @param {Piece[]} said
 * @param {string} call
 */
export function callEnds(said, call) {
  return said.filter(({ whole }) => !(whole.type === "tool_output" && whole.tool === call));
}

/**
 * Whether both are parts of one text, or of one call's arguments.
 * @param {Delta} known
 * @param {Delta} delta
 */
function isOne(known, delta) {
  const call = (/** @type {Delta} */ one) => ("tool" in one ? one.tool : undefined);
  return known.type === delta.type && call(known) === call(delta);
}

/**
 * @param {Piece} piece
 * @param {Delta} delta
 */
function goesOn(piece, delta) {
  const rejoined = piece.rejoined;
  piece.rejoined = false;
  if (delta.n <= piece.whole.n) return false;
  const known = "text" in piece.whole ? piece.whole.text : "";
  piece.whole = { ...delta };
  // It says how far a call has come.
  if (!("text" in piece.whole) || !("text" in delta)) return true;
  const again = rejoined && !piece.is_cut && delta.text.startsWith(known);
  piece.whole.text = rejoined ? delta.text : known + delta.text;
  keepTheNewest(piece);
  return (again ? known : "").length < delta.text.length;
}

/**
 * Forgets the oldest of what is too much.
 * @param {Piece} piece
 */
function keepTheNewest(piece) {
  const { whole } = piece;
  if (!("text" in whole)) return;
  const most = whole.type === "tool_output" || whole.type === "setup_output" ? OUTPUT_MAX : TEXT_MAX;
  // A unit of UTF-16 has three bytes at most: short texts need not be counted.
  if (whole.text.length * 3 > most && bytes(whole.text) > most) {
    whole.text = newest(whole.text, most);
    piece.is_cut = true;
  }
}
