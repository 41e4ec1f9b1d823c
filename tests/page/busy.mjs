// A session that is too much for any page: a lead and 20 agents, thousands of events behind them, and all of them speak.

import { lead } from './ground.mjs';

export const MIB = 1 << 20;

/** So many agents beside the lead. */
export const WORKERS = 20;

/** How many events a turn with so many calls that read a file is told by. */
const CALLS = 16;
const EVENTS = 2 + 2 * CALLS;

/** Something that has to be laid out. */
const MARKDOWN = 'The **parser** reads `one` word\n- after the *other*\n- and [never](https://example.org/a) looks back.\n\n> It goes on,\n\n1. and on.\n\n';

/** So long, and so many words. */
const said = (words) => MARKDOWN.repeat(Math.ceil(words / 22)).split(' ').slice(0, words).join(' ');

/** A turn in which it says something and reads; in few words, for a scenario is bounded. */
function turn(n) {
  const call = (_, at) => ({ id: `${n}-${at}`, name: 'read', input: { path: 'n' } });
  return { text: `${MARKDOWN}Turn ${n}.`, tools: Array.from({ length: CALLS }, call) };
}

/** What it does: so many events, and then it speaks for so many seconds, 20 words in each. */
function model(events, seconds) {
  const turns = Array.from({ length: Math.ceil(events / EVENTS) }, (_, n) => turn(n));
  return [...turns, { takes: `${seconds}s`, text: said(seconds * 20) }, { takes: '1s', text: 'Heard.' }];
}

/**
 * The scenario: of its events the lead, whom the page shows first, has half.
 * @param {{events: number, seconds: number}} much
 */
export function busy({ events, seconds }) {
  const workers = Array.from({ length: WORKERS }, (_, n) => `worker-${n + 1}`);
  const spawn = (name) => ({ id: `s-${name}`, name: 'spawn_agent', input: { name, prompt: 'Read, and say what you read.' } });
  const first = [{ text: 'All of you.', tools: workers.map(spawn) }, ...model(events / 2, seconds)];
  const worker = (name) => ({ name, start: 'spawned', model: model(events / 2 / WORKERS, seconds) });
  // What is JSON is YAML.
  return JSON.stringify({ midturn: 1, name: 'busy', agents: [{ name: 'lead', role: 'lead', model: first }, ...workers.map(worker)] });
}

/** A project with the file that they read, in every worktree. */
export function furnish(ground) {
  ground.write('n', 'A line of notes that somebody reads.\n'.repeat(20));
  ground.git('add', 'n');
  ground.git('-c', 'user.name=Page', '-c', 'user.email=page@example.org', 'commit', '--quiet', '-m', 'notes');
}

/** Whether so many events were told, and everybody speaks. */
export async function says(ground, session, events) {
  const [{ last_seq }, { agents }] = [await ground.ask('GET', `sessions/${session}`), await ground.ask('GET', `sessions/${session}/agents`)];
  const speaks = ({ activity }) => activity.some(({ what }) => what === 'model');
  return last_seq >= events && agents.length === WORKERS + 1 && agents.every(speaks);
}

/** What the page's scripts hold after a collection, in bytes. */
export async function heap(context, page) {
  const cdp = await context.newCDPSession(page);
  await cdp.send('HeapProfiler.collectGarbage');
  const { usedSize } = await cdp.send('Runtime.getHeapUsage');
  await cdp.detach();
  return usedSize;
}

/** An agent that says so much, turn after turn. */
export const replies = (text, turns) => {
  const one = (_, n) => ({ text, tools: [{ id: `r${n}`, name: 'read', input: { path: 'n', limit: 1 } }] });
  const model = [...Array.from({ length: turns }, one), { takes: '1s', text: 'Done.' }];
  return JSON.stringify({ midturn: 1, name: 'many', agents: [{ name: 'lead', role: 'lead', model }] });
};

/** A text as models write them. */
export const LIST = 'A **word**, `code` and [a link](https://example.org).\n\n- one\n- two\n\n';

/** An agent that says one word in a quarter of an hour. */
export const IDLE = lead('      - {takes: 900s, text: "One."}\n');

/** The stream of a session in which a reply of this text ends: a scenario has 4 MiB at most. */
export async function saysAtOnce(page, text) {
  let isFirst = true;
  await page.route('**/events?*', async (route) => {
    if (!isFirst) return;
    isFirst = false;
    const events = [
      { type: 'agent_spawned', role: 'lead', prompt: 'Go.' },
      { type: 'run_started', run: 1, trigger: 'prompt' },
      { type: 'model_started', run: 1, turn: 1, call: 1, messages: 1 },
      { type: 'model_finished', run: 1, turn: 1, stop_reason: 'end_turn', usage: {}, text, thinking: [], tools: [] },
      { type: 'run_finished', run: 1, outcome: 'finished', turns: 1, usage: {} },
    ];
    const frame = (event, n) => `id: ${n + 1}\nevent: ${event.type}\ndata: ${JSON.stringify({ v: 1, seq: n + 1, t: 1, agent: 'lead', ...event })}\n\n`;
    await route.fulfill({ contentType: 'text/event-stream', body: events.map(frame).join('') });
  });
}
