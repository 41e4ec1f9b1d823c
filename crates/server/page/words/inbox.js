/**
 * The inbox: what in a session waits for a person, the newest first (crates/view/src/inbox.rs; `tests/fold` holds this to
 * it). What conflicts the list of agents says.
 */

import { isWorking } from "../fold/agent.js";
import { micros } from "../fold/text.js";
import { asked, short } from "./gist.js";
import { oneLine } from "./clean.js";

/** @import { Agent, Ask } from '../fold/types.js' */

/**
 * What waits. `since` is `null` of what ended before the first event that was told; `id` tells it from every other need
 * of its session.
 * @typedef {{agent: string, what: 'asks' | 'ended' | 'failed' | 'limit' | 'conflict', since: number | null, words: string,
 *   id: string}} Need
 *
 * A merge that would not go, of what an agent had done by the end of this run.
 * @typedef {{run: number, since: number, files: string[]}} Conflict
 */

/**
 * All that waits for a person in a session, the newest first.
 * @param {{agents: Record<string, Agent>, asks: Ask[]}} view
 * @param {Map<string, Conflict>} [conflicts] by agent
 * @param {string} [lead] whom a person talks to, where no event has told
 * @returns {Need[]}
 */
export function needs({ agents, asks }, conflicts = new Map(), lead = undefined) {
  const all = Object.entries(agents);
  const rest = !all.some(([, agent]) => isWorking(agent));
  const ended = all.flatMap(([name, agent]) => endOf(name, agent, rest, agent.role === "lead" || name === lead));
  const torn = [...conflicts].flatMap(([name, conflict]) => conflictOf(name, agents[name], conflict));
  return [...asks.map(askOf), ...ended, ...torn].sort(newestFirst);
}

/**
 * Who waits with what, on one line.
 * @param {Need} need
 */
export function needLine({ agent, what, words }) {
  if (what === "asks") return `${agent} asks: ${words}`;
  if (what === "limit") return `${agent} is at a limit: ${words}`;
  if (what === "conflict") return `${agent} could not be merged: conflicts in ${words}`;
  const head = what === "ended" ? `${agent} has ended` : `${agent} failed`;
  return words ? `${head}: ${words}` : head;
}

/**
 * @param {Ask} ask
 * @returns {Need}
 */
function askOf({ agent, tool, name, input, since }) {
  return { agent, what: "asks", since, words: asked(name, input), id: `${agent} asks ${micros(since)} ${tool}` };
}

/**
 * @param {string} name
 * @param {Agent} agent
 * @param {boolean} rest nobody works
 * @param {boolean} isLead
 * @returns {Need[]}
 */
function endOf(name, agent, rest, isLead) {
  const { outcome, ended, ended_at: since } = agent;
  if (isWorking(agent) || agent.is_closed || outcome === null || outcome === "stopped") return [];
  if (outcome === "finished" && !(isLead && rest)) return [];
  const what = outcome === "finished" ? "ended" : outcome;
  const words = short((what === "ended" ? agent.text : agent.error) ?? "");
  return [{ agent: name, what, since, words, id: `${name} ${what} ${ended}` }];
}

/**
 * @param {string} name
 * @param {Agent | undefined} agent
 * @param {Conflict} conflict
 * @returns {Need[]}
 */
function conflictOf(name, agent, { run, since, files }) {
  // Whoever works may be about to mend it.
  if (!agent || agent.is_closed || isWorking(agent)) return [];
  return [{ agent: name, what: "conflict", since, words: short(files.map(oneLine).join(", ")), id: `${name} conflict ${run}` }];
}

/**
 * @param {Need} a
 * @param {Need} b
 */
function newestFirst(a, b) {
  const age = (b.since ?? -1) - (a.since ?? -1);
  return age !== 0 ? age : a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}
