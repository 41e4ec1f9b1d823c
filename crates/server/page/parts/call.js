// A call of a tool: folded to a line, opened to all of it.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { micros, spanMicros } from "../fold.js";
import { clean, figures, gist, oneLine, visible } from "../words.js";
import { change } from "./diff.js";

/** So much of an output is shown, in characters: the newest while it runs. */
const OUTPUT_MAX = 32 << 10;

/**
 * @param {any} call
 * @param {{output: string, asks: boolean, now: number, isOpen: boolean, onToggle: (isOpen: boolean) => void}} now
 */
export function call(call, { output, asks, now, isOpen, onToggle }) {
  const [tone, words] = standing(call, asks, now);
  const { state } = call;
  const all = state.type === "ended" ? state.output : output;
  const toggled = (/** @type {any} */ event) => onToggle(event.target.open);
  // What nobody has opened is not in the page: it may be long.
  return html`<details class="call ${tone}" .open=${isOpen} @toggle=${toggled}>
    <summary><span class="what"><b>${oneLine(call.name)}</b> ${gist(call.input)}</span> <span class="how">${words}</span></summary>
    ${isOpen ? html`${whole(call.name, call.input)}${said(call)}` : nothing}
    ${isOpen && all ? html`<pre class="output" tabindex="0">${clean(all.slice(-OUTPUT_MAX))}</pre>` : nothing}
  </details>
  ${state.type === "running" && output ? html`<pre class="tail" aria-hidden="true">${tail(output, 3)}</pre>` : nothing}`;
}

/**
 * How it stands: a tone, and words that are never cut.
 * @param {any} call
 * @param {boolean} asks
 * @param {number} now
 */
function standing({ state, word }, asks, now) {
  if (asks) return ["asks", "asks you"];
  if (state.type === "waiting") return ["quiet", "waits"];
  if (state.type === "running") return ["works", `running ${figures.clock(micros(Math.max(0, now - state.since)))}`];
  const took = state.took ? ` · ${figures.took(spanMicros(state.took))}` : "";
  if (state.status === "completed") return ["good", `ok${state.bytes > 0 ? ` · ${figures.bytes(state.bytes)}` : ""}${took}`];
  if (state.status === "failed") return word?.[0] === "denied" ? ["cut", "denied"] : ["bad", `failed${took}`];
  if (state.status === "skipped") return ["cut", "skipped"];
  if (state.status === "unknown") return ["cut", `unknown${took}`];
  // What was cut is never shown as completed.
  const partial = state.status === "stopped" ? "Partial (stopped)" : "Partial (interrupted)";
  return ["cut", `${state.bytes > 0 ? partial : state.status}${took}`];
}

const WORDS = new Map([["once", "allowed once"], ["session", "allowed in this session"], ["not_answered", "not answered in time"]]);

/** What a person said to it. @param {any} call */
function said({ word }) {
  if (!word) return nothing;
  const [decision, by, reason] = word;
  return html`<p class="line quiet">${WORDS.get(decision) ?? decision} by ${by === "user" ? "you" : oneLine(by)}${reason ? `: ${visible(reason)}` : ""}</p>`;
}

/**
 * The last lines of what is being printed.
 * @param {string} text
 * @param {number} lines
 */
export function tail(text, lines) {
  return clean(text.slice(-1024 * lines)).trimEnd().split("\n").slice(-lines).join("\n");
}

/**
 * All that a call is given, nothing left out, and what hides in it named.
 * @param {string} name
 * @param {any} input
 */
export function whole(name, input) {
  const rest = { ...(typeof input === "object" && !Array.isArray(input) ? input : { arguments: input }) };
  return html`<div class="whole">${subject(name, rest)}${Object.entries(rest).map(([name, value]) => argument(name, value))}</div>`;
}

/**
 * What a tool that is known is about; it is taken out of the arguments.
 * @param {string} name
 * @param {Record<string, any>} rest
 */
function subject(name, rest) {
  /** @param {string[]} names */
  const has = (names) => names.find((one) => typeof rest[one] === "string");
  const take = (/** @type {string} */ one) => {
    const value = rest[one];
    delete rest[one];
    return visible(value);
  };
  const path = has(["path", "file_path"]);
  const [old, now] = [has(["old", "old_string"]), has(["new", "new_string"])];
  if (name === "bash" && has(["command"])) return html`<pre class="command" tabindex="0">${take("command")}</pre>`;
  if (name === "edit" && path && old && now) {
    return html`<p class="path">${take(path)}</p>${change(take(old), take(now))}`;
  }
  if (name === "write" && path && has(["content"])) {
    return html`<p class="path">${take(path)}</p>${change("", take("content"))}`;
  }
  return nothing;
}

/**
 * @param {string} name
 * @param {any} value
 */
function argument(name, value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, undefined, 1);
  return html`<p class="argument"><b>${visible(name)}</b> <span>${visible(text ?? "")}</span></p>`;
}
