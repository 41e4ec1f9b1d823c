// The rows of the board: every agent that events or the server's list tell of, by need. Rows move only when
// what an agent needs does.

import { classOf, doing, oneLine, Order, short } from "./words.js";

/** @import {Page} from "./page.js" */

/**
 * @typedef {{name: string, kind: string, word: string, doing: string, since?: number, queued: number, tokens: number,
 *   depth: number}} Row
 */

/** The order of each watched session. @type {WeakMap<object, Order>} */
const orders = new WeakMap();

/** What a class is called where its sign can't be seen. */
const WORDS = /** @type {Record<string, string>} */ ({
  asks: "asks you",
  failed: "failed",
  works: "works",
  waits: "waits",
  idle: "idle",
  stopped: "stopped",
  closed: "closed",
});

/**
 * @param {Page} page
 * @returns {Row[]}
 */
export function rows(page) {
  const { watched } = page;
  if (!watched) return [];
  const { agents, asks } = watched.fold.view;
  const order = orders.get(watched) ?? new Order();
  orders.set(watched, order);
  const firstAsk = new Map([...asks].reverse().map((/** @type {any} */ ask) => [ask.agent, ask]));
  const names = [...watched.listed.keys()].filter((name) => name in agents);
  const later = Object.keys(agents).filter((name) => !watched.listed.has(name));
  const all = [...names, ...later];
  order.told(all.map((name) => [name, classOf(agents[name], firstAsk.has(name))]));
  const rows = order.rows.map(({ name, class: kind }) => row(watched, name, kind, firstAsk.get(name)));
  const untold = [...watched.listed.values()].filter(({ name }) => !(name in agents));
  return [...rows, ...untold.map(listed)];
}

/**
 * @param {any} watched
 * @param {string} name
 * @param {string} kind
 * @param {any} ask
 * @returns {Row}
 */
function row(watched, name, kind, ask) {
  const agent = watched.fold.view.agents[name];
  const { words, since } = doing(agent, ask, watched.now);
  const { input, output } = agent.usage;
  return {
    name,
    kind,
    word: WORDS[kind] ?? kind,
    doing: words,
    since: since ?? undefined,
    queued: agent.queue.length,
    tokens: input + output,
    depth: depth(watched.fold.view.agents, name),
  };
}

/**
 * An agent of which no event was told: it rested before the first one.
 * @param {any} agent
 * @returns {Row}
 */
function listed({ name, state, pending, tokens, last_end }) {
  const kind = state === "closed" ? "closed" : state === "stopped" ? "stopped" : "idle";
  const doing = last_end ? oneLine(`${last_end.outcome}: ${short(last_end.text)}`) : oneLine(state);
  return { name, kind, word: WORDS[kind], doing, queued: pending, tokens, depth: 1 };
}

/**
 * @param {any} agents
 * @param {string} name
 */
function depth(agents, name) {
  let deep = 0;
  for (let parent = agents[name]?.parent; parent && deep < 8; parent = agents[parent]?.parent) deep += 1;
  return deep;
}
