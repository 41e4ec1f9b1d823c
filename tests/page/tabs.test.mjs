// More than one tab, and what a page that goes away leaves behind.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import test from 'node:test';

import { Ground, lead, looking, shown, until } from './ground.mjs';

const LONG = 'The parser reads one word after the other and never looks back. '.repeat(6);
const STREAMING = lead(`      - {takes: 60s, text: "${LONG}"}\n      - {takes: 200ms, text: "Heard."}\n`);

const log = (page) => page.getByRole('log');
const streams = (page) => log(page).getByText('The parser reads').waitFor();

/** What another program on this machine is sent, that listens on this port; any free one for 0. */
async function stranger(port = 0) {
  const heads = [];
  const server = createServer((request, response) => {
    heads.push(request.headers);
    response.end('<!doctype html><title>Mine</title>');
  });
  await new Promise((ready, failed) => server.once('error', failed).listen(port, '127.0.0.1', () => ready(undefined)));
  const end = () => {
    const ended = new Promise((done) => server.close(done));
    // A browser keeps connections, also some that it never asked anything on.
    server.closeAllConnections();
    return ended;
  };
  return { heads, address: `http://127.0.0.1:${server.address().port}/`, end };
}

test('seven tabs of one browser all show what is said, and each can be written in', () =>
  shown(STREAMING, async ({ page, context, ground, session }) => {
    await streams(page);
    const tabs = [page];
    for (let nth = 2; nth <= 7; nth += 1) {
      const tab = await context.newPage();
      await tab.goto(page.url());
      await tab.getByRole('textbox', { name: 'Message to lead' }).waitFor();
      tabs.push(tab);
    }
    const last = tabs[6];
    await last.getByLabel('Mode').selectOption({ label: 'Stop and send' });
    await last.getByRole('textbox', { name: 'Message to lead' }).fill('From the seventh.');
    await last.getByRole('textbox', { name: 'Message to lead' }).press('Enter');
    for (const tab of tabs) await log(tab).getByText('Heard.', { exact: true }).waitFor();
    // No more than four streams are open, so that requests have connections left.
    const held = await last.evaluate(async () => (await navigator.locks.query()).held.map(({ name }) => name));
    assert.equal(held.filter((name) => name.startsWith('midturn.place.')).length, 4, held.join());
    assert.equal((await ground.events(session, 'message_queued')).length, 1);
  }));

test('another server on this machine is sent nothing, and one that takes the port a token that is worth nothing', async () => {
  const ground = new Ground();
  const other = await stranger();
  try {
    await ground.serve(STREAMING);
    const session = await ground.begin();
    await looking(async (page) => {
      await page.goto(ground.link(session));
      await streams(page);
      const { host, port } = new URL(page.url());
      const tab = await page.context().newPage();
      await tab.goto(other.address);
      assert.ok(other.heads.length > 0);
      for (const { cookie, authorization, referer = '' } of other.heads) {
        assert.deepEqual([cookie, authorization, referer.includes(port)], [undefined, undefined, false]);
      }
      assert.deepEqual(await tab.evaluate(() => Object.keys(localStorage)), []);
      await tab.close();

      await ground.kill();
      const taken = await stranger(Number(port));
      await until('the page asks whoever is there now', () => taken.heads.some(({ authorization }) => authorization));
      await taken.end();
      const { authorization } = taken.heads.find((head) => head.authorization);
      await ground.serve(STREAMING, '--listen', host);
      assert.equal((await fetch(`http://${host}/v1/sessions`, { headers: { authorization } })).status, 401);
    });
  } finally {
    await other.end();
    await ground.end();
  }
});

test('a page that is closed leaves its agents at work; with page.on_leave = "stop" it stops them, and a hidden one does not', async () => {
  for (const stops of [false, true]) {
    const ground = new Ground();
    try {
      await ground.serve(STREAMING, ...(stops ? ['--set', 'page.on_leave=stop'] : []));
      const session = await ground.begin();
      await looking(async (page) => {
        await page.goto(ground.link(session));
        await streams(page);
        const left = [];
        page.on('request', (request) => request.url().endsWith('/leave') && left.push(request));
        await page.evaluate(() => {
          Object.defineProperty(document, 'hidden', { value: true, configurable: true });
          document.dispatchEvent(new Event('visibilitychange'));
        });
        assert.deepEqual(left, []);
        await page.close();
      });
      if (stops) {
        await until('the run is stopped', async () => (await ground.events(session, 'run_finished')).length > 0);
        assert.equal((await ground.events(session, 'stop_requested')).length, 1);
      } else {
        assert.deepEqual(await ground.ask('POST', `sessions/${session}/leave`, {}), {});
        assert.deepEqual(await ground.events(session, 'stop_requested'), []);
      }
    } finally {
      await ground.end();
    }
  }
});
