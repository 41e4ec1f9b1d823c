// Seed 004: what comes of a run that is over changes nothing, in the page's fold and on the page.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

import { Session } from '../../crates/server/page/fold.js';
import { lead, shown, until } from './ground.mjs';

const LONG = 'The parser reads one word after the other and never looks back. '.repeat(6);
const STREAMING = lead(
  `      - {takes: 60s, text: "${LONG}"}\n      - {takes: 200ms, text: "Heard."}\n      - {takes: 200ms, text: "Heard again."}\n`,
);

const log = (page) => page.getByRole('log');
const stop = (page) => page.getByRole('button', { name: 'Stop generating response' });

/** How many connections are open at a port of this machine. */
function connections(port) {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n').map((row) => row.trim().split(/\s+/));
  return rows.filter(([, address, , state]) => address === local && state === '01').length;
}

/** All events of a session. */
async function recorded(ground, session) {
  const { events } = await ground.ask('GET', `sessions/${session}/log?limit=1000`);
  return events;
}

/** A session that was told all of these. */
function folded(events) {
  const session = new Session();
  for (const event of events) session.told(event);
  return session;
}

// > 004: Stale-stream guard drops callbacks when runId changes
// > 004: Late SSE chunks after abort do not modify UI
// > 004: Drop any chunk whose run_id (or closure token) does not match activeStreamRunId
// > 004: onComplete/onError handlers must also guard, so they cannot clear state for a superseding run
test('chunks, ends and errors of a run that is over change nothing, also while the next one streams', () =>
  shown(STREAMING, async ({ page, ground, session }) => {
    await log(page).getByText('The parser').waitFor();
    await stop(page).click();
    await page.getByRole('textbox', { name: 'Message to lead' }).fill('Go on.');
    await page.getByRole('textbox', { name: 'Message to lead' }).press('Enter');
    await log(page).getByText('Heard.', { exact: true }).waitFor();
    const events = await recorded(ground, session);
    const [first, second] = [1, 2].map((run) => events.findIndex((event) => event.type === 'run_started' && event.run === run));
    const of_first = events.slice(first, second);
    // In the middle of the second run, all of the first is told once more, and what never came of it.
    for (let upto = second + 1; upto <= events.length; upto += 1) {
      const told = folded(events.slice(0, upto));
      // The number of the last event goes on, and nothing else.
      const all = () => JSON.stringify({ ...told, view: { ...told.view, seq: 0 } });
      const before = all();
      for (const event of of_first) assert.equal(told.told(event), false, `${event.type} at ${upto}`);
      const late = { v: 1, t: 99, agent: 'lead', run: 1, turn: 1, type: 'text_delta', text: 'late' };
      assert.equal(told.live(late), false);
      const seq = events.at(-1).seq + 1;
      for (const type of ['model_finished', 'model_failed', 'run_finished']) {
        assert.equal(told.told({ ...events[first], seq, type, outcome: 'finished', text: 'late' }), false, type);
      }
      assert.equal(all(), before, `at ${upto}`);
    }
  }));

// > 004: handleStopGeneration() writes interrupted metadata before finalizing and resets all state
test('a stop is recorded with what was said so far before the run is over, and nothing of it is left', () =>
  shown(STREAMING, async ({ page, ground, session }) => {
    await log(page).getByText('The parser').waitFor();
    await stop(page).click();
    await log(page).getByText('Response interrupted').waitFor();
    const events = await recorded(ground, session);
    const order = ['stop_requested', 'model_interrupted', 'run_finished'];
    assert.deepEqual(events.map(({ type }) => type).filter((type) => order.includes(type)), order);
    const cut = events.find(({ type }) => type === 'model_interrupted');
    assert.deepEqual([cut.reason, cut.partial_tokens > 0], ['user_cancelled', true]);
    const { view } = folded(events);
    const { said, activity, run, ended } = view.agents.lead;
    assert.deepEqual([said, run], [[], ended], JSON.stringify(activity));
    await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
    assert.equal(await page.locator('.composer.streaming').count(), 0);
  }));

// > 004: Abort signal propagates through SSE processor
// > 004: Abort controller properly cancels fetch
// > 004: No orphaned connections after stop
// > 004: Server-side cleanup of stream resources
// > 004: No dangling streams or memory leaks
test('ten stops leave one stream open, and a page that is closed none', () =>
  shown(lead(`      - {takes: 60s, text: "${LONG}"}\n`.repeat(11)), async ({ page, ground, session, context }) => {
    await log(page).getByText('The parser').first().waitFor();
    const open = [];
    page.on('request', (request) => request.url().includes('/events') && open.push(request.url()));
    for (let nth = 1; nth <= 10; nth += 1) {
      await stop(page).click();
      await log(page).getByText('Response interrupted').nth(nth - 1).waitFor();
      await page.getByRole('textbox', { name: 'Message to lead' }).fill(`Go on, ${nth}.`);
      await page.getByRole('textbox', { name: 'Message to lead' }).press('Enter');
      await log(page).getByText(`Go on, ${nth}.`).first().waitFor();
      await stop(page).waitFor();
    }
    // The session's one stream went through all of it: a stop cancels a run, and no fetch has to be made anew.
    assert.deepEqual(open, []);
    assert.equal((await ground.events(session, 'stop_requested')).length, 10);
    const port = Number(new URL(page.url()).port);
    assert.ok(connections(port) > 0);
    await context.close();
    await until('the daemon has no connection any more', () => connections(port) === 0);
  }));

// > 004: Abort signal cannot be spoofed by client
// > 004: Server validates session before persisting partial
// > 004: Rate limiting still applies to stopped requests
test('a stop needs a token, a session that is there and a run that is on, and counts like every request', () =>
  shown(STREAMING, async ({ page, ground, session }) => {
    await log(page).getByText('The parser').waitFor();
    const origin = new URL(page.url()).origin;
    const ask = (path, headers) =>
      fetch(`${origin}/v1/${path}`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: '{}' });
    const path = `sessions/${session}/agents/lead/stop`;
    assert.equal((await ask(path, {})).status, 401);
    assert.equal((await ask(path, { authorization: `Bearer ${'0'.repeat(64)}` })).status, 401);
    const authorization = await page.evaluate(async () => {
      const kept = Object.values(localStorage).join(' ');
      return `Bearer ${/[0-9a-f]{64}/.exec(kept)?.[0]}`;
    });
    assert.equal((await ask('sessions/no-such-session/agents/lead/stop', { authorization })).status, 404);
    assert.equal((await ask(`sessions/${session}/agents/nobody/stop`, { authorization })).status, 404);
    assert.deepEqual(await ground.events(session, 'stop_requested'), []);
    const stopped = async () => (await ask(path, { authorization })).status;
    assert.equal(await stopped(), 200);
    // More than may come at once, from as many as may be connected.
    const statuses = new Set();
    for (let batch = 0; batch < 40 && !statuses.has(429); batch += 1) {
      for (const status of await Promise.all(Array.from({ length: 100 }, stopped))) statuses.add(status);
    }
    assert.deepEqual([...statuses].sort(), [200, 429]);
    assert.equal((await ground.events(session, 'stop_requested')).length, 1);
  }));
