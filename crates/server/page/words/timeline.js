/** What a picture says of what stands in it, for who points at it or hears it read (crates/view/src/timeline/words.rs). */

import { returned } from "../words.js";
import * as figures from "./figures.js";

/** @import { Bar, Letter, MarkKind, Moment } from '../fold/timeline.js' */

/** @type {Record<string, string>} the sign of each point that has not its own letter */
const POINTS = { start: "›", stream: "~", wait: "W" };

/** @type {Record<string, string>} */
const OUTCOMES = { finished: "✓", stopped: "□", failed: "✕", limit: "▲" };

/** @type {Record<string, string>} */
const HALTS = { stop: "stopped", supersede: "superseded", close: "closed", shutdown: "stopped by a shutdown" };

/**
 * An instant as it is written: seconds in the first minute, then a clock.
 * @param {number} at in microseconds
 */
export function instant(at) {
  if (at >= 60e6) return figures.clock(at);
  const [seconds, hundredths] = [Math.floor(at / 1e6), Math.floor(at / 10_000) % 100];
  const decimals = hundredths % 10 === 0 ? String(hundredths / 10) : String(hundredths).padStart(2, "0");
  return `${seconds}.${decimals} s`;
}

/**
 * What a bar is, how it ended and how long it took.
 * @param {Bar} bar
 * @param {string} whose
 * @param {Moment} now
 */
export function bar(bar, whose, now) {
  const about = `${bar.name} ${bar.what}`.replace(/(?:(?!\ufeff)[\s\x85])+$/u, "");
  const took = figures.took(Math.max(0, (bar.to ?? now).at - bar.from.at));
  const beside = bar.hides === 0 ? "" : `, ${bar.hides} more beside it`;
  return `${whose}: ${about}, ${ended(bar, took)}${beside} (run ${bar.run}, turn ${bar.turn})`;
}

/**
 * @param {Bar} bar
 * @param {string} took
 */
function ended({ end, kind }, took) {
  switch (end) {
    case "open":
      return `for ${took} now`;
    case "done":
      return took;
    case "failed":
      return kind === "wait" ? `denied after ${took}` : `failed after ${took}`;
    case "unknown":
      return `nobody knows how it ended, after ${took}`;
    case "skipped":
      return "skipped: it never ran";
    default:
      return `${end} after ${took}`;
  }
}

/**
 * A message: from whom to whom, how urgent, its text, what became of it.
 * @param {Letter} letter
 * @param {string} to
 */
export function letter(letter, to) {
  const said = letter.text === "" ? "" : `: ${letter.text}`;
  return `${letter.from} to ${to}, ${letter.urgency ?? "message"}${said} (${became(letter)})`;
}

/** @param {Letter} letter */
function became({ ahead, sent }) {
  const since = (/** @type {Moment} */ { at }) => figures.took(Math.max(0, at - sent.at));
  switch (ahead.type) {
    case "waits":
      return "waits";
    case "injected":
      return `injected at ${ahead.point} after ${since(ahead.at)}`;
    case "returned":
      return `${returned(ahead.reason)} after ${since(ahead.at)}`;
    case "refused":
      return `refused: ${ahead.reason}`;
  }
}

/**
 * What happened at a moment.
 * @param {MarkKind} kind
 * @param {string} whose
 */
export function mark(kind, whose) {
  switch (kind.type) {
    case "injected": {
      const { messages, point, skipped, interrupted } = kind;
      const cost = [skipped > 0 ? `, ${many(skipped, "call")} skipped` : "", interrupted > 0 ? `, ${many(interrupted, "call")} interrupted` : ""];
      return `${whose}: ${many(messages, "message")} injected at ${point}${cost.join("")}`;
    }
    case "returned":
      return `${whose}: a message came back, ${returned(kind.reason)}`;
    case "refused":
      return `${whose}: a message was refused, ${kind.reason}`;
    case "stop":
      return `${whose}: ${HALTS[kind.reason]} by ${kind.by}`;
    case "run_end":
      return `${whose}: its run ended, ${kind.outcome}`;
    case "closed":
      return `${whose}: closed`;
  }
}

/**
 * The sign of what happened.
 * @param {MarkKind} kind
 */
export function sign(kind) {
  switch (kind.type) {
    case "injected":
      return POINTS[kind.point] ?? kind.point;
    case "returned":
    case "refused":
      return "⊘";
    case "stop":
      return "■";
    case "run_end":
      return OUTCOMES[kind.outcome] ?? "?";
    case "closed":
      return "‖";
  }
}

/**
 * @param {number} number
 * @param {string} what
 */
function many(number, what) {
  return number === 1 ? `1 ${what}` : `${number} ${what}s`;
}
