// Dialogs: one at a time, closed by Escape, by a click beside them, and by what they do.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { ACTIONS, written } from "../keys.js";
import { oneLine } from "../words.js";
import { inbox } from "./inbox.js";
import { MODES } from "./composer.js";
import { sessions } from "./start.js";
import { closeDialog, submit } from "../deeds.js";

/** @import {Page, Dialog} from "../page.js" */

/** @param {Page} page */
export function dialog(page) {
  const it = page.dialog;
  if (!it) return nothing;
  const { name, body } = DIALOGS[it.kind](page, it);
  const beside = (/** @type {Event} */ event) => event.target === event.currentTarget && closeDialog(page);
  return html`<dialog class="dialog" aria-labelledby="dialog-name" @click=${beside} @cancel=${(/** @type {Event} */ event) => cancel(page, event)}>
    <div class="sheet">
      <div class="top"><h2 id="dialog-name">${name}</h2>
        <button class="plain" aria-label="Close this" @click=${() => closeDialog(page)}>✕</button></div>
      ${body}
      ${it.error ? html`<p class="line bad" role="alert">${it.error}</p>` : nothing}
    </div>
  </dialog>`;
}

/**
 * @param {Page} page
 * @param {Event} event
 */
function cancel(page, event) {
  event.preventDefault();
  closeDialog(page);
}

/** @type {Record<Dialog["kind"], (page: Page, it: Dialog) => {name: string, body: unknown}>} */
const DIALOGS = {
  inbox: (page) => ({ name: "What waits for you", body: inbox(page) }),
  keys: (page, it) => ({ name: "Keys", body: keys(page, it) }),
  figures: (page, it) => ({ name: "Figures of this process", body: figures(it.figures, page.stops) }),
  sessions: (page, it) => ({ name: "Sessions", body: it.sessions ? sessions(page, it.sessions) : "Loading …" }),
  begin: (page, it) => ({ name: "Begin a session", body: begin(page, it) }),
  spawn: (page, it) => ({ name: "Spawn an agent", body: spawn(page, it) }),
  limit: (page, it) => ({ name: it.agent ? `Limits of ${it.agent}` : "Limits of the session", body: limit(page, it) }),
  close: (page, it) => ({ name: `Close ${it.agent}?`, body: close(page, it) }),
};

const KEYS = [
  ["any letter", "type, wherever the focus is"],
  ["Tab", "go on to the next control, also while it streams"],
  ["← →", "change between conversation, timeline, plan and diff"],
  ["← → ↑ ↓, + − 0, m", "on the timeline: along time and between agents, nearer and farther, move a message"],
  ["Space, ← →, + −", "in what is played back: play or wait, one event back or on, faster or slower"],
  ["↑ ↓", "in a diff: go from line to line, to comment on it with Enter"],
];

/**
 * @param {Page} page
 * @param {Dialog} it
 */
function keys(page, it) {
  const reset = () => {
    page.keys.reset();
    [it.changes, it.error] = [undefined, undefined];
    page.say("All keys are as they were");
  };
  return html`<dl class="pairs">${ACTIONS.map((row) => html`<dt><kbd>${page.keys.of(row.action)}</kbd></dt>
      <dd class="chosen">${row.does} ${change(page, it, row)}</dd>`)}${KEYS.map(([key, does]) => html`<dt><kbd>${key}</kbd></dt><dd>${does}</dd>`)}</dl>
    <p class="bar"><button ?disabled=${page.keys.areOwn} @click=${reset}>As they were</button></p>
    <h3>Modes</h3>
    <dl class="pairs">${MODES.map(([, name, does]) => html`<dt>${name}</dt><dd>${does}</dd>`)}</dl>`;
}

/**
 * The button that waits for a key.
 * @param {Page} page
 * @param {Dialog} it
 * @param {(typeof ACTIONS)[number]} row
 */
function change(page, it, { action, does }) {
  // Asked when something happens: what is drawn may be a frame behind.
  const waits = () => it.changes === action;
  const begin = () => {
    [it.changes, it.error] = [waits() ? undefined : action, undefined];
    page.draw();
  };
  const ends = () => {
    if (waits()) it.changes = undefined;
    page.draw();
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const key = waits() && !event.isComposing && event.keyCode !== 229 ? written(event) : "";
    // Tab goes on to the next control, as everywhere.
    if (key === "" || key.endsWith("Tab")) return;
    event.preventDefault();
    event.stopPropagation();
    const why = page.keys.choose(action, key);
    [it.changes, it.error] = [why ? action : undefined, why || undefined];
    page.say(why || `${key}: ${does}`);
  };
  return html`<button class="small" aria-label="Change the key: ${does}" aria-pressed=${waits()} @click=${begin} @keydown=${pressed}
    @blur=${ends}>${waits() ? "Press a key" : "Change"}</button>`;
}

/**
 * How often people stop, how fast that is, what follows, and how much is cut; then the others.
 * @param {any} stats
 * @param {number[]} clicks how long each stop from this page took, in ms
 */
function figures(stats, clicks) {
  if (!stats) return "Loading …";
  const { stops, messages, model, calls } = stats;
  const percent = (/** @type {number | null} */ rate) => (rate === null || rate === undefined ? "–" : `${Math.round(rate * 100)} %`);
  const time = (/** @type {any} */ spread) => (spread?.p50 === null || !spread ? "–" : `${spread.p50.toFixed(3)} s (half), ${spread.p99.toFixed(3)} s (99 %)`);
  const size = (/** @type {any} */ spread) => (spread?.p50 === null || !spread ? "–" : `${Math.round(spread.p50)} tokens (half), ${Math.round(spread.p99)} (99 %)`);
  /** @type {[string, string | number][]} */
  const rows = [
    ["Runs that were stopped", percent(stops.stop_rate)],
    ["From a stop to the last word", time(stops.cut_seconds)],
    ["From a stop to the end of the run", time(stops.end_seconds)],
    ["From your last click on stop to the end", clicks.length > 0 ? `${((clicks.at(-1) ?? 0) / 1000).toFixed(3)} s` : "–"],
    ["Stops that a message followed", percent(stops.follow_up_rate)],
    ["Length of what was cut", size(stops.partial_tokens)],
    ["Messages accepted, refused", `${messages.accepted}, ${messages.refused}`],
    ["Calls skipped, cut by mail", `${calls.skipped_by_mail}, ${calls.interrupted_by_mail}`],
    ["Model calls, tried again", `${model.calls}, ${model.retries}`],
  ];
  return html`<dl class="pairs">${rows.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/**
 * A form whose fields go to `submit`.
 * @param {Dialog} it
 * @param {string} does
 * @param {unknown} fields
 * @param {(field: (name: string) => string | undefined) => void} submit
 */
function form(it, does, fields, submit) {
  const send = (/** @type {any} */ event) => {
    event.preventDefault();
    const data = new FormData(event.target);
    submit((name) => data.get(name)?.toString().trim() || undefined);
  };
  return html`<form class="fields" @submit=${send}>${fields}
    <p class="bar"><button type="submit" ?disabled=${it.busy}>${does}</button></p></form>`;
}

/**
 * @param {Page} page
 * @param {Dialog} it
 */
function begin(page, it) {
  const fields = html`
    <label>Task <textarea name="task" rows="4" required autofocus></textarea></label>
    <label>Folder <input name="folder" placeholder="where Midturn runs" autocomplete="off"></label>
    <label>Model <input name="model" placeholder="the configured one" autocomplete="off"></label>`;
  return form(it, "Begin", fields, (field) => {
    const body = { task: field("task") ?? "", folder: field("folder"), model: field("model"), answers: true };
    void submit(page, "/sessions", body, (session) => page.open(session));
  });
}

/**
 * @param {Page} page
 * @param {Dialog} it
 */
function spawn(page, it) {
  const fields = html`
    <label>Name <input name="name" required autofocus pattern="[a-z0-9][a-z0-9_\\-]{0,63}" title="a-z, 0-9, _ and -" autocomplete="off" autocapitalize="off"></label>
    <label>What it is to do <textarea name="prompt" rows="4"></textarea></label>
    <label>Definition <input name="agent" placeholder="none" autocomplete="off"></label>`;
  return form(it, "Spawn", fields, (field) => {
    const body = { name: field("name") ?? "", prompt: field("prompt"), agent: field("agent"), parent: it.agent };
    void submit(page, "agents", body, ({ name }) => page.choose(name));
  });
}

/**
 * @param {Page} page
 * @param {Dialog} it
 */
function limit(page, it) {
  const fields = html`<p class="quiet">What is left empty stays as it is; 0 is no limit.</p>
    <label>Dollars <input name="max_cost" autofocus inputmode="decimal" placeholder="2.50" autocomplete="off"></label>
    <label>Tokens <input name="max_tokens" inputmode="numeric" pattern="[0-9]*" autocomplete="off"></label>
    <label>Turns <input name="max_turns" inputmode="numeric" pattern="[0-9]*" autocomplete="off"></label>
    <label>Time <input name="max_time" placeholder="2h" autocomplete="off"></label>`;
  return form(it, "Set", fields, (field) => {
    const number = (/** @type {string} */ name) => (field(name) === undefined ? undefined : Number(field(name)));
    const body = { max_cost: field("max_cost"), max_tokens: number("max_tokens"), max_turns: number("max_turns"), max_time: field("max_time") };
    const path = it.agent ? `agents/${encodeURIComponent(it.agent)}/limits` : "limits";
    void submit(page, path, body, () => page.say("Limits are set"));
  });
}

/**
 * @param {Page} page
 * @param {Dialog} it
 */
function close(page, it) {
  const agent = it.agent ?? "";
  const says = html`<p>It and all agents below it are stopped, and nobody can wake them again. What they wrote stays on their branches.</p>`;
  return form(it, `Close ${oneLine(agent)}`, says, () => {
    void submit(page, `agents/${encodeURIComponent(agent)}/close`, {}, ({ closed }) => page.say(`Closed ${closed.join(", ")}`));
  });
}
