// What a person says to lines of an agent's diff: the message that it becomes, and where it stands once the diff is
// another one (crates/view/src/review.rs). What was sent is read back out of the messages: there is no second account.

import { injected, returned, short, waits } from "./words.js";
import { clean } from "./words/clean.js";
import { trim } from "./words/gist.js";
import { placeOf, shortened } from "./patch.js";
import { characters } from "./fold/text.js";

/**
 * @import {Patch, Place} from "./patch.js"
 * @typedef {Place & {text: string}} Comment
 * @typedef {{comment: Comment, says: string, reply?: string}} Sent
 */

/** So many comments go as one message. With what each may have they fit into the longest one. */
export const COMMENTS_MAX = 24;

/** How many characters a comment has at most. */
const TEXT_MAX = 2_000;

/** How many characters of its line a comment quotes. */
const CODE_MAX = 200;

/** How many comments that were sent are shown: the newest. */
const SENT_MAX = 96;

/** What stands before each line of a comment: nothing in it is taken for the beginning of another. */
const INDENT = "   ";

/** Said behind the number of a line that is not in the new file. */
const REMOVED = " (taken out)";

/**
 * A comment on this line.
 * @param {Place} place
 * @param {string} text
 * @returns {Comment}
 */
export function commentOn({ file, side, line, code }, text) {
  return { file, line, side, code: shortened(code, CODE_MAX), text: trim(clean(trim(text))) };
}

/**
 * Whether both are on the same line.
 * @param {Place} one
 * @param {Place} other
 */
export function isBeside(one, other) {
  return one.file === other.file && one.line === other.line && one.side === other.side && shortened(one.code, CODE_MAX) === shortened(other.code, CODE_MAX);
}

/** Where it is, for people: `src/a.rs:12`. @param {Place} place */
export function whereabouts({ file, line, side }) {
  return `${file}:${line}${side === "old" ? REMOVED : ""}`;
}

/** Why a text is no comment, and what to do. @param {string} text */
export function tooLongComment(text) {
  const count = characters(text);
  return count > TEXT_MAX ? `a comment has at most ${TEXT_MAX} characters, and this one has ${count}: shorten it` : undefined;
}

/** Said where no more comments fit. */
export function full() {
  return `at most ${COMMENTS_MAX} comments go as one: send these first`;
}

/** The message that these comments make. @param {Comment[]} comments */
export function messageOf(comments) {
  const head = comments.length === 1 ? "1 comment on your diff:" : `${comments.length} comments on your diff:`;
  const said = comments.map((comment, n) => {
    const text = comment.text.split("\n").map((line) => `${INDENT}${line}`);
    return [`${n + 1}. ${whereabouts(comment)}`, `${INDENT}> ${comment.code}`, ...text].join("\n");
  });
  return [head, ...said].join("\n\n");
}

/**
 * The comments that a message is made of; nothing: it is another one.
 * @param {string} text
 * @returns {Comment[] | undefined}
 */
export function readComments(text) {
  const count = Number(/^(\d+) comments? on your diff:\n\n/.exec(text)?.[1] ?? 0);
  if (count < 1 || count > COMMENTS_MAX) return undefined;
  const lines = text.split("\n").slice(2);
  const comments = [];
  for (let n = 1; n <= count; n++) {
    const head = /^(\d+)\. (.*):(\d+)( \(taken out\))?$/.exec(lines.shift() ?? "");
    const code = lines.shift();
    if (!head || head[1] !== String(n) || !code?.startsWith(`${INDENT}> `) || Number(head[3]) > 0xffff_ffff) return undefined;
    const said = [];
    while (lines[0]?.startsWith(INDENT)) said.push(lines.shift()?.slice(INDENT.length));
    /** @type {"old" | "new"} */
    const side = head[4] ? "old" : "new";
    comments.push({ file: head[2] ?? "", line: Number(head[3]), side, code: code.slice(INDENT.length + 2), text: said.join("\n") });
    // An empty line stands between two, and none behind the last.
    const between = lines.shift();
    if (between !== undefined && (between !== "" || n === count)) return undefined;
  }
  return comments;
}

/**
 * The row of a diff that a comment stands at: its line, also where that has moved. Nothing: the line has changed, or is
 * no part of the diff any more.
 * @param {Place} comment
 * @param {Patch} patch
 * @returns {number | undefined}
 */
export function standsAt(comment, { rows }) {
  let [nearest, away] = [-1, Infinity];
  for (const [at, row] of rows.entries()) {
    const place = placeOf(row);
    if (!place || place.file !== comment.file || place.side !== comment.side) continue;
    const distance = Math.abs(place.line - comment.line);
    if (distance < away && shortened(place.code, CODE_MAX) === shortened(comment.code, CODE_MAX)) [nearest, away] = [at, distance];
  }
  // A brace is everywhere: one that has moved is as well another.
  const isKnown = away === 0 || /[\p{Alphabetic}\p{N}]/u.test(comment.code);
  return nearest >= 0 && isKnown ? nearest : undefined;
}

/**
 * The comments that were sent to an agent, the oldest first, as far as its conversation is known.
 * @param {any} agent
 * @param {any[]} entries
 * @returns {Sent[]}
 */
export function sentComments(agent, entries) {
  /** @type {Sent[]} */
  const all = [];
  const add = (/** @type {any} */ { from, text }, /** @type {() => Omit<Sent, "comment">} */ what) => {
    const comments = from === "user" ? readComments(text) : undefined;
    if (comments) all.push(...comments.map((comment) => ({ comment, ...what() })));
  };
  for (const [at, { kind }] of entries.entries()) {
    if (kind.type === "returned") add(kind.letter, () => ({ says: returned(kind.reason) }));
    if (kind.type !== "injected") continue;
    for (const letter of kind.letters) add(letter, () => ({ says: injected(kind), reply: reply(entries, at + 1) }));
  }
  for (const message of agent?.queue ?? []) add(message, () => ({ says: waits(message.urgency, agent) }));
  return all.slice(-SENT_MAX);
}

/**
 * The next thing that is said, on a line.
 * @param {any[]} entries
 * @param {number} from
 */
function reply(entries, from) {
  const entry = entries.slice(from).find(({ kind }) => kind.type === "reply");
  return entry && short(entry.kind.text);
}
