// Answers what a test asks, a line of JSON for each: what the page makes of what is told of a session, and how it says
// things.

import { createInterface } from "node:readline";

import { Session } from "../../crates/server/page/fold.js";
import * as patch from "../../crates/server/page/patch.js";
import * as review from "../../crates/server/page/review.js";
import * as words from "../../crates/server/page/words.js";

const URGENCIES = ["follow_up", "after_tools", "next_boundary", "urgent"];

function classes({ agents, asks }) {
  const of = (name) =>
    words.classOf(
      agents[name],
      asks.some((ask) => ask.agent === name),
    );
  return Object.keys(agents)
    .sort()
    .map((name) => [name, of(name)]);
}

function agentSays({ agents, asks, t }, name) {
  const agent = agents[name];
  if (!agent) return null;
  const ask = asks.find((one) => one.agent === name);
  const { words: does, since } = words.doing(agent, ask, t);
  const mail = URGENCIES.map((urgency) => [words.promise(urgency, agent), words.waits(urgency, agent)]);
  return [words.classSign(words.classOf(agent, ask !== undefined)), does, since, mail];
}

function entrySays({ kind }) {
  if (kind.type === "injected") return words.injected(kind);
  return kind.type === "returned" ? words.returned(kind.reason) : null;
}

/** Takes one thing that is told: whether it changed anything. */
function take(session, { event, live, other }) {
  if (event) return session.told(event);
  if (live) return session.live(live);
  if (other) return session.told(other) || session.live(other);
  session.rejoined();
  return true;
}

/** The timeline from these instants on, each as it is then or at the last event. */
function pictures(session, instants) {
  return instants.map((from) => session.drawn(from, 0).picture);
}

function folded({ told, says, from }) {
  const session = new Session();
  const order = new words.Order();
  const moments = told.map((one) => {
    const changed = take(session, one);
    if (!says) return changed;
    const name = (one.event ?? one.live ?? {}).agent;
    return [changed, order.told(classes(session.view)), name ? agentSays(session.view, name) : null];
  });
  const entries = Object.entries(session.conversations);
  const said = entries.map(([name, { entries }]) => [name, entries.map(entrySays)]);
  const rows = order.rows.map((row) => [row.name, row.class]);
  const waiting = says ? words.needs(session.view) : [];
  const needs = waiting.map((need) => [need.id, need.agent, need.what, need.since, words.needLine(need)]);
  const all = says ? Object.fromEntries(said) : {};
  return { moments, session, needs, usage: session.view.usage(), rows, says: all, pictures: pictures(session, from) };
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  const answer = asked.told ? folded(asked) : asked.all.map(([name, ...given]) => say(name)(...given) ?? null);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

function say(name) {
  if (name === "standsIn") return (comment, text) => review.standsAt(comment, patch.readPatch(text));
  return words[name] ?? words.figures[name] ?? review[name] ?? patch[name];
}
