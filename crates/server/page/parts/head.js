// The session in a line, and whom one looks at.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { figures, oneLine } from "../words.js";
import { inboxButton } from "./inbox.js";
import { rows } from "../roster.js";
import { isWorking } from "../watched.js";
import { openDialog, resume } from "../deeds.js";

/** @import {Page, Tab} from "../page.js" */

/** @param {Page} page */
export function head(page) {
  const { watched } = page;
  return html`<header class="head">
    <button class="plain drawer" aria-expanded=${page.isDrawerOpen} aria-controls="board" @click=${() => toggle(page)}>☰ ${asking(page)}</button>
    <h1 title=${watched?.session.folder ?? ""}>${oneLine(watched?.session.title ?? "") || "Midturn"}</h1>
    <p class="counts" title=${watched?.session.shared ?? nothing}>${counts(page)}${watched?.session.shared ? " · one folder for all" : ""}</p>
    ${inboxButton(page)}
    <details class="menu">
      <summary aria-label="Menu">⋯</summary>
      <div class="items" @click=${closeMenu}>
        <button @click=${() => openDialog(page, { kind: "sessions" })}>Sessions</button>
        <button @click=${() => openDialog(page, { kind: "begin" })}>Begin a session</button>
        ${watched?.kind === "replay" ? nothing : html`<button @click=${() => openDialog(page, { kind: "limit" })}>Limits of the session</button>`}
        <button @click=${() => openDialog(page, { kind: "figures" })}>Figures</button>
        <button @click=${() => openDialog(page, { kind: "keys" })}>Keys</button>
        <button @click=${() => page.setTheme(next(page.theme))}>Theme: ${page.theme}</button>
      </div>
    </details>
  </header>`;
}

/** @param {Event} event */
function closeMenu(event) {
  const menu = /** @type {HTMLElement} */ (event.currentTarget).closest("details");
  if (menu) menu.open = false;
}

/** @param {Page} page */
function toggle(page) {
  page.isDrawerOpen = !page.isDrawerOpen;
  page.draw();
}

/** @param {string} theme */
function next(theme) {
  return theme === "auto" ? "dark" : theme === "dark" ? "light" : "auto";
}

/** What the button to the board says on a narrow screen. @param {Page} page */
function asking(page) {
  const asks = new Set(page.view?.asks.map((/** @type {any} */ ask) => ask.agent)).size;
  return asks > 0 ? html`Agents <b class="asks-mark">${asks} ask${asks === 1 ? "s" : ""}</b>` : "Agents";
}

/** @param {Page} page */
export function counts(page) {
  const all = rows(page);
  const of = (/** @type {string} */ kind) => all.filter((row) => row.kind === kind).length;
  const parts = [all.length === 1 ? "1 agent" : `${all.length} agents`];
  for (const [kind, one, many] of [["works", "works", "work"], ["asks", "asks", "ask"], ["failed", "failed", "failed"]]) {
    if (of(kind) > 0) parts.push(`${of(kind)} ${of(kind) === 1 ? one : many}`);
  }
  const tokens = all.reduce((sum, row) => sum + row.tokens, 0);
  if (tokens > 0) parts.push(`${figures.count(tokens)} tokens`);
  const cost = dollars([...(page.watched?.listed.values() ?? [])]);
  if (cost) parts.push(cost);
  return parts.join(" · ");
}

/**
 * Dollars, of texts such as `0.38`; `undefined` where no prices are known.
 * @param {{cost?: string, priced_at?: string}[]} agents
 */
function dollars(agents) {
  const known = agents.filter(({ cost }) => cost !== undefined);
  const sum = known.reduce((sum, { cost }) => sum + Number(cost), 0);
  return known.length === 0 ? undefined : `${about(known)}$${sum.toFixed(2)}`;
}

/**
 * What stands before money that is counted with the table of prices.
 * @param {{priced_at?: string}[]} agents
 */
const about = (agents) => (agents.some(({ priced_at }) => priced_at !== undefined) ? "~" : "");

/** Whom one looks at, what can be done with it, and what of it is shown. @param {Page} page */
export function title(page) {
  const { agent, chosen } = page;
  return html`<div class="title">
    <h2>${agent || "No agent yet"}</h2>
    <p class="quiet">${facts(page)}</p>
    <div class="tabs" role="tablist" aria-label="What is shown" @keydown=${(/** @type {KeyboardEvent} */ event) => arrows(page, event)}>
      ${tabs(page).map(([tab, name]) => html`<button id="tab-${tab}" role="tab" aria-controls="shown" aria-selected=${page.tab === tab}
        tabindex=${page.tab === tab ? 0 : -1} @click=${() => page.show(tab)}>${name}</button>`)}
    </div>
    ${agent && page.isLive && !page.isJoined && !chosen?.is_closed ? acts(page) : nothing}
  </div>`;
}

/** @type {[Tab, string][]} */
const TABS = [["talk", "Conversation"], ["timeline", "Timeline"], ["plan", "Plan"], ["diff", "Diff"]];

/** What there is to be shown: of another program's agent what is said and when, of a scenario's no files. @param {Page} page */
const tabs = (page) => TABS.slice(0, page.isJoined ? 2 : page.watched?.kind === "replay" ? 3 : 4);

/**
 * @param {Page} page
 * @param {KeyboardEvent} event
 */
function arrows(page, event) {
  const all = tabs(page);
  const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? all.length - 1 : 0;
  if (step === 0) return;
  event.preventDefault();
  const at = all.findIndex(([tab]) => tab === page.tab);
  const [tab] = all[(at + step) % all.length];
  page.show(tab);
  document.getElementById(`tab-${tab}`)?.focus();
}

/** @param {Page} page */
function facts(page) {
  const { chosen, agent } = page;
  const listed = page.watched?.listed.get(agent);
  const steps = chosen?.plan ?? [];
  const parts = [];
  if (chosen?.run) parts.push(`run ${chosen.run} turn ${chosen.turn}`);
  if (chosen?.model ?? listed?.model) parts.push(oneLine(chosen?.model ?? listed.model));
  if (listed?.branch) parts.push(oneLine(listed.branch));
  const done = steps.filter((/** @type {any} */ step) => step.status === "completed").length;
  if (steps.length > 0) parts.push(`plan ${done}/${steps.length}`);
  if (listed?.context?.limit) parts.push(`ctx ${Math.floor((100 * listed.context.used) / listed.context.limit)}%`);
  if (chosen?.usage.output) parts.push(`${figures.count(chosen.usage.input + chosen.usage.output)} tokens`);
  if (listed?.cost) parts.push(`${about([listed])}$${listed.cost}`);
  return parts.join(" · ");
}

/** @param {Page} page */
function acts(page) {
  const { agent, chosen } = page;
  const rests = chosen && !isWorking(chosen) && (chosen.outcome === "stopped" || chosen.outcome === "failed");
  return html`<details class="menu">
    <summary aria-label="What can be done with ${agent}">⋯</summary>
    <div class="items" @click=${closeMenu}>
      ${rests ? html`<button @click=${() => resume(page, agent)}>Resume</button>` : nothing}
      <button @click=${() => openDialog(page, { kind: "limit", agent })}>Limits</button>
      <button @click=${() => openDialog(page, { kind: "spawn", agent })}>Spawn below it</button>
      <button @click=${() => openDialog(page, { kind: "close", agent })}>Close it</button>
    </div>
  </details>`;
}
