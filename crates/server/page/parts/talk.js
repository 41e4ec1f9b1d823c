// The conversation: what was said, what is being said, and what waits to be.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { guard } from "../vendor/lit-html/directives/guard.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { clean, figures, injected, oneLine, returned } from "../words.js";
import { pieces } from "../folded.js";
import { isWorking } from "../watched.js";
import { call, tail } from "./call.js";
import { elements, prose } from "./prose.js";
import { thought, thinking } from "./thought.js";
import { openDialog, resume } from "../deeds.js";
import { plain } from "../markdown.js";
import { part } from "../shown.js";

/** @import {Page} from "../page.js" */

/** Longer ones of what is being said are shown as plain text until they are whole. */
const LIVE_MAX = 16 << 10;

/** So much of a plain text is shown, in characters; of what is being said the newest. */
const PLAIN_MAX = 64 << 10;

/** So many lines of what a setup prints are shown: nothing else is told meanwhile, so there is room. */
const SETUP_TAIL = 10;

/** So many elements a row has beside what is laid out in it, about. */
const ELEMENTS = 5;

/** So many characters cost what an element does, about. */
const CHARACTERS = 128;

/** @param {Page} page */
export function talk(page) {
  const all = rows(page);
  const end = Math.min(page.until.get(page.agent) ?? all.length, all.length);
  const { begin, older, newer } = part(all, end);
  const isNewest = end === all.length;
  return html`<div id="log" class="log" role="log" aria-live="off" aria-label="Conversation with ${page.agent}" tabindex="0">
    ${before(page, begin, () => move(page, older(), all.length))}
    ${repeat(all.slice(begin, end), ({ key }) => key, (row) => guard([page.watched, ...row.changes], row.draw))}
    ${isNewest
      ? said(page)
      : html`<button class="plain wide" @click=${() => move(page, newer(), all.length)}>Newer</button>`}
    ${all.length === 0 && !isWorking(page.chosen) ? html`<p class="quiet empty">${page.watched?.caughtUp ? "Nothing was said yet." : "Loading …"}</p>` : nothing}
  </div>`;
}

/**
 * @param {Page} page
 * @param {number} begin
 * @param {() => void} older
 */
function before(page, begin, older) {
  if (begin > 0) return html`<button class="plain wide" @click=${older}>Older (${begin})</button>`;
  const dropped = page.watched?.fold.conversations[page.agent]?.dropped ?? 0;
  const earlier = dropped > 0 || (page.watched?.from ?? 0) > 0;
  if (earlier && page.watched?.kind === "replay") return html`<p class="quiet">What was older is not kept here.</p>`;
  return earlier ? html`<p class="quiet">Older than this: <code>midturn log ${page.watched?.id} --agent ${page.agent}</code></p>` : nothing;
}

/**
 * @param {Page} page
 * @param {number} until
 * @param {number} all
 */
function move(page, until, all) {
  page.follows = until >= all;
  if (until >= all) page.until.delete(page.agent);
  else page.until.set(page.agent, until);
  page.draw();
}

/**
 * Entries and notes in the order of their events. `changes`: what the row is drawn of.
 * @param {Page} page
 * @returns {{key: string, size: () => number, changes: unknown[], draw: () => unknown}[]}
 */
function rows(page) {
  const { watched, agent } = page;
  if (!watched) return [];
  const { entries = [], dropped = 0 } = watched.fold.conversations[agent] ?? {};
  const notes = watched.notes.get(agent) ?? [];
  const all = [];
  // Notes on what is not kept any more are not shown either.
  let next = dropped > 0 ? notes.filter(({ seq }) => seq < (entries[0]?.seq ?? 0)).length : 0;
  for (const [n, entry] of entries.entries()) {
    while (next < notes.length && notes[next].seq <= entry.seq) all.push(noteRow(notes[next++]));
    all.push(entryRow(page, entry, dropped + n));
  }
  while (next < notes.length) all.push(noteRow(notes[next++]));
  return all;
}

/** How much it is to draw, in elements, about. @param {any} kind */
function sizeOf(kind) {
  const texts = kind.letters ?? [kind.letter ?? kind];
  const long = texts.reduce((/** @type {number} */ sum, /** @type {any} */ { text = "" }) => sum + Math.min(text.length, PLAIN_MAX), 0);
  return ELEMENTS * texts.length + long / CHARACTERS + (kind.type === "reply" ? elements(kind) : 0);
}

/** @param {import("../folded.js").Note} note */
function noteRow(note) {
  return { key: `n${note.seq}`, size: () => ELEMENTS, changes: [note], draw: () => thought(note) };
}

/**
 * @param {Page} page
 * @param {any} entry
 * @param {number} number
 */
function entryRow(page, entry, number) {
  const { kind } = entry;
  const row = { key: `e${number}`, size: () => sizeOf(kind) };
  if (kind.type === "end") {
    const isLast = page.isLive && rests(page.chosen, entry.run);
    return { ...row, changes: [entry.seq, isLast], draw: () => end(page, kind, isLast) };
  }
  if (kind.type !== "call") return { ...row, changes: [entry.seq, entry.changed], draw: () => one(kind) };
  const output = kind.state.type === "running" ? printed(page, kind.id) : "";
  const asks = page.view?.asks.some((/** @type {any} */ ask) => ask.agent === page.agent && ask.tool === kind.id) ?? false;
  const second = kind.state.type === "running" ? Math.floor(page.watched?.now ?? 0) : 0;
  const name = `${page.agent} ${entry.seq} ${kind.id}`;
  const isOpen = page.opened.has(name);
  const onToggle = (/** @type {boolean} */ open) => page.toggle(name, open);
  const draw = () => call(kind, { output, asks, now: page.watched?.now ?? 0, isOpen, onToggle });
  return { ...row, changes: [entry.seq, entry.changed, output, asks, second, isOpen], draw };
}

/**
 * @param {Page} page
 * @param {string} id
 */
function printed(page, id) {
  const piece = pieces(page.chosen).find(({ type, tool }) => type === "tool_output" && tool === id);
  return piece?.text ?? "";
}

/**
 * Whether an agent rests since this run.
 * @param {any} agent
 * @param {number} run
 */
function rests(agent, run) {
  return agent !== undefined && agent.run === run && agent.ended === run && !agent.is_closed;
}

/** @param {any} kind */
function one(kind) {
  switch (kind.type) {
    case "prompt":
      return letter("task", kind.text, "");
    case "reply":
      return reply(kind);
    case "injected":
      return mail(kind);
    case "returned":
      return letter(sender(kind.letter.from), kind.letter.text, returned(kind.reason), "back");
    case "retry":
      return line("bad", `Try ${kind.attempt} failed: ${oneLine(kind.error)}. Again in ${kind.wait}`);
    case "stop":
      // One's own stop is told by what it ended, and by what was sent instead.
      return kind.by === "user" && ["stop", "supersede"].includes(kind.reason) ? nothing : line("cut", `${STOPS.get(kind.reason) ?? kind.reason} by ${sender(kind.by)}`);
    case "limit":
      return line("quiet", `${sender(kind.by)} set ${limits(kind.limits)}`);
    case "compacted":
      return line("quiet", `The older part was summarised: ${figures.count(kind.tokens.before)} tokens are ${figures.count(kind.tokens.after)}`);
    case "closed":
      return line("quiet", "Closed");
    default:
      return nothing;
  }
}

const STOPS = new Map([["stop", "Stop asked for"], ["supersede", "Stopped and started anew"], ["close", "Closed"], ["shutdown", "Shut down"]]);

/** The seven reasons (semantics.md, section 6). */
export const REASONS = new Map([
  ["user_cancelled", "stopped by you"],
  ["superseded", "you sent something else instead"],
  ["message_interrupt", "an urgent message came"],
  ["stopped_by_parent", "stopped by its parent"],
  ["shutdown", "Midturn was shut down"],
  ["limit", "it came to a limit"],
  ["error", "the model's reply broke off"],
]);

/** @param {string} reason */
export function badge(reason) {
  return html`<p class="badge cut">Response interrupted<span> · ${REASONS.get(reason) ?? reason}</span></p>`;
}

/** @param {{text: string, cut: string | null}} reply */
function reply({ text, cut }) {
  return html`<article class="reply">${prose(text)}${cut ? badge(cut) : nothing}</article>`;
}

/** Mail that went in together: each message with its sender, and one receipt below them. @param {any} mail */
function mail(mail) {
  return html`<div class="mails">
    ${mail.letters.map((/** @type {any} */ one) => letter(sender(one.from), one.text, "", one.from === "user" ? "yours" : ""))}
    <p class="receipt">${injected(mail)}</p>
  </div>`;
}

/**
 * @param {string} from
 * @param {string} text
 * @param {string} receipt
 * @param {string} [kind]
 */
function letter(from, text, receipt, kind = "") {
  return html`<article class="letter ${kind}">
    <h3 class="from">${from}</h3>
    <div class="text">${plain(text)}</div>
    ${receipt ? html`<p class="receipt">${receipt}</p>` : nothing}
  </article>`;
}

/** @param {string} from */
export function sender(from) {
  return from === "user" ? "you" : from === "" ? "mail" : oneLine(from);
}

/**
 * @param {string} tone
 * @param {string} text
 */
function line(tone, text) {
  return html`<p class="line ${tone}">${text}</p>`;
}

/** @param {Record<string, unknown>} limits */
function limits(limits) {
  return Object.entries(limits).filter(([, value]) => value !== null).map(([name, value]) => `${name} = ${value}`).join(", ");
}

/**
 * How a run ended, and what can be done about it, if it is the last one.
 * @param {Page} page
 * @param {any} end
 * @param {boolean} isLast
 */
function end(page, { outcome, error, turns }, isLast) {
  const button = isLast ? again(page, outcome) : nothing;
  // No summary of a turn after an abort.
  if (outcome === "stopped") return html`<p class="line cut">Stopped ${button}</p>`;
  const words = `${outcome} after ${turns === 1 ? "1 turn" : `${turns} turns`}${error ? `: ${oneLine(error)}` : ""}`;
  if (outcome === "finished") return line("good", words);
  return html`<p class="line bad">${words} ${button}</p>`;
}

/**
 * @param {Page} page
 * @param {string} outcome
 */
function again(page, outcome) {
  const agent = page.agent;
  if (outcome === "limit") {
    return html`<button class="small" @click=${() => openDialog(page, { kind: "limit", agent })}>Raise the limit</button>`;
  }
  return html`<button class="small" @click=${() => resume(page, agent)}>${outcome === "stopped" ? "Resume" : "Try again"}</button>`;
}

/** What is being said. @param {Page} page */
function said(page) {
  const agent = page.chosen;
  const now = pieces(agent);
  const text = now.find(({ type }) => type === "text_delta")?.text ?? "";
  const thinks = now.find(({ type }) => type === "thinking_delta")?.text ?? "";
  const writes = now.filter(({ type }) => type === "call_delta");
  const setup = now.find(({ type }) => type === "setup_output")?.text ?? "";
  return html`${setup ? html`<p class="line quiet">The folder is made ready</p><pre class="tail setup">${tail(setup, SETUP_TAIL)}</pre>` : nothing}
    ${thinks ? thinking(thinks, text !== "" || writes.length > 0) : nothing}
    ${text ? html`<article class="reply streaming">${guard([text], () => live(text))}</article>` : nothing}
    ${writes.map(({ name, bytes: size }) => html`<p class="line quiet">writes a call of ${oneLine(name)} (${figures.bytes(size)})</p>`)}
    ${now.length === 0 ? html`<p class="line quiet">${idle(page)}</p>` : nothing}`;
}

/** What it does while it says nothing, and no call of it runs. @param {Page} page */
function idle(page) {
  const agent = page.chosen;
  if (!agent || !isWorking(agent)) return nothing;
  if (page.isStopping) return "Stopping …";
  if (agent.calls.length > 0 || page.view?.asks.some((/** @type {any} */ ask) => ask.agent === page.agent)) return nothing;
  return "Working …";
}

/** @param {string} text */
function live(text) {
  return text.length <= LIVE_MAX ? prose(text) : html`<pre class="plain">${clean(text.slice(-PLAIN_MAX))}</pre>`;
}
