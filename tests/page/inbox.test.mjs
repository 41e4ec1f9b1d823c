// What waits for the person: listed, told once to whoever doesn't look and has asked for that, and where it leads.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';

import { Ground, lead, looking, shown, until } from './ground.mjs';

const SHOTS = process.env.MIDTURN_PAGE_SHOTS;

/** A lead that asks about a command whenever somebody says something, and then answers. */
const ASKING = lead(`      - {text: Ready.}\n${['one', 'two', 'three', 'four']
  .map((word, n) => `      - tools: [{id: b${n}, name: bash, input: {command: touch ${word}}}]\n      - {text: Said ${word}.}\n`)
  .join('')}`);

const button = (page) => page.getByRole('button', { name: /^Inbox/ });
const dialog = (page) => page.getByRole('dialog');
/** It has said this, and its run has ended: who looks away before that is told of the end. */
const says = (page, text) => page.getByRole('log').filter({ hasText: new RegExp(`${text}\\s*finished after`) }).waitFor();
const counts = (page, count) => page.getByRole('button', { name: `Inbox ${count}`, exact: true }).waitFor();

/** Somebody else says something to the lead. */
const tell = (ground, session, text) => ground.ask('POST', `sessions/${session}/agents/lead/messages`, { text });

/** Somebody else answers the request that is open. */
async function answered(ground, session) {
  const open = async () => (await ground.ask('GET', `sessions/${session}/approvals`)).approvals;
  await until('it is asked', async () => (await open()).length === 1);
  const [{ agent, tool }] = await open();
  await ground.ask('POST', `sessions/${session}/agents/${agent}/approvals/${tool}`, { decision: 'denied' });
}

/** In the browser: what notifications there were, and a tab that is looked at as the test says. */
function stub() {
  globalThis.asked = 0;
  globalThis.told = [];
  globalThis.looks = true;
  globalThis.Notification = class {
    static permission = localStorage.getItem('allowed') ?? 'default';

    static async requestPermission() {
      globalThis.asked += 1;
      localStorage.setItem('allowed', 'granted');
      this.permission = 'granted';
      return 'granted';
    }

    constructor(title, { body, tag }) {
      Object.assign(this, { title, body, tag });
      globalThis.told.push(this);
    }

    close() {}
  };
  document.hasFocus = () => globalThis.looks;
}

/** A page on a session that is ready, its notifications recorded. */
function inboxed(look) {
  return shown(ASKING, async (all) => {
    // Signed in: the link is good once.
    await says(all.page, 'Ready.');
    await all.context.addInitScript(stub);
    await all.page.reload();
    await says(all.page, 'Ready.');
    await look(all);
  }, { words: ['--mode', 'ask'] });
}

async function looks(page, is) {
  await page.evaluate((is) => {
    globalThis.looks = is;
    window.dispatchEvent(new Event(is ? 'focus' : 'blur'));
  }, is);
  const holds = () => page.evaluate(async () => (await navigator.locks.query()).held.filter(({ name }) => name.startsWith('midturn.looks.')).length);
  return holds;
}

const told = (page) => page.evaluate(() => globalThis.told.map(({ body }) => body));

/** How many things were told, behind whoever tells now. */
const countTold = (page) => page.evaluate(async () => {
  await navigator.locks.request('midturn.tells', () => {});
  return JSON.parse(localStorage.getItem('midturn.told')).length;
});

async function turnOn(page) {
  await button(page).click();
  await dialog(page).getByRole('button', { name: "Tell me when I don't look" }).click();
  await dialog(page).getByText("The browser tells you when you don't look.").waitFor();
  await page.keyboard.press('Escape');
}

/** What the page knows of the lock of tabs that are looked at. */
async function isAway(page) {
  const holds = await looks(page, false);
  await until('no tab is looked at', async () => (await holds()) === 0);
}

test('what waits is in the inbox with the newest first, in the title, and a click leads there', () =>
  inboxed(async ({ page, ground, session }) => {
    await counts(page, 1);
    assert.match(await page.title(), /^\(1\) Go\. · Midturn$/);
    await button(page).click();
    await dialog(page).getByText('lead has ended: Ready.').waitFor();
    await page.keyboard.press('Escape');
    await tell(ground, session, 'One.');
    await page.getByRole('region', { name: 'lead asks' }).waitFor();
    await page.getByRole('tab', { name: 'Plan' }).click();
    await button(page).click();
    const row = dialog(page).getByRole('button', { name: /lead asks: bash: touch one/ });
    await row.waitFor();
    if (SHOTS) await pictures(page);
    await row.click();
    await page.getByRole('tab', { name: 'Conversation', selected: true }).waitFor();
    assert.equal(await dialog(page).count(), 0);
    await answered(ground, session);
    await says(page, 'Said one.');
    await counts(page, 1);
  }));

async function pictures(page) {
  for (const theme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: theme });
    for (const width of [360, 1280]) {
      await page.setViewportSize({ width, height: 700 });
      await page.screenshot({ path: join(SHOTS, `inbox-${theme}-${width}.png`) });
    }
  }
}

test('nothing is told before it was asked for, and the browser is asked by a click alone', () =>
  inboxed(async ({ page, ground, session }) => {
    await isAway(page);
    await tell(ground, session, 'One.');
    await page.waitForFunction(() => document.title.startsWith('(1)') && document.querySelector('.ask'));
    assert.deepEqual([await told(page), await page.evaluate(() => globalThis.asked)], [[], 0]);
    await answered(ground, session);
    await says(page, 'Said one.');
    await countTold(page);
    await turnOn(page);
    assert.equal(await page.evaluate(() => globalThis.asked), 1);
    await tell(ground, session, 'Two.');
    await page.waitForFunction(() => globalThis.told.length === 1);
    assert.deepEqual(await told(page), ['lead asks: bash: touch two']);
    await button(page).click();
    await dialog(page).getByRole('button', { name: "Don't tell me" }).click();
    await page.keyboard.press('Escape');
    await answered(ground, session);
    await says(page, 'Said two.');
    await countTold(page);
    assert.equal((await told(page)).length, 1);
  }));

test('nothing is told while the page is looked at, one thing once when it is not, and none again after a reconnect or a reload', () =>
  inboxed(async ({ page, ground, session, context }) => {
    await turnOn(page);
    const holds = await looks(page, true);
    await until('it is looked at', async () => (await holds()) === 1);
    await tell(ground, session, 'One.');
    await page.getByRole('region', { name: 'lead asks' }).waitFor();
    assert.deepEqual(await told(page), []);
    await isAway(page);
    await answered(ground, session);
    await page.waitForFunction(() => globalThis.told.length === 1);
    assert.deepEqual(await told(page), ['lead has ended: Said one.']);
    await tell(ground, session, 'Two.');
    await page.waitForFunction(() => globalThis.told.length === 2);
    // The connection breaks and comes back.
    await context.setOffline(true);
    await page.evaluate(() => window.dispatchEvent(new Event('blur')));
    await context.setOffline(false);
    await answered(ground, session);
    await says(page, 'Said two.');
    await page.waitForFunction(() => globalThis.told.length === 3);
    assert.deepEqual(await told(page), ['lead has ended: Said one.', 'lead asks: bash: touch two', 'lead has ended: Said two.']);
    await page.reload();
    await says(page, 'Said two.');
    await isAway(page);
    await tell(ground, session, 'Three.');
    await page.waitForFunction(() => globalThis.told.length > 0);
    assert.deepEqual(await told(page), ['lead asks: bash: touch three']);
  }));

test('of several tabs one tells, and none while another is looked at', () =>
  inboxed(async ({ page, context, ground, session }) => {
    await turnOn(page);
    const other = await context.newPage();
    await other.goto(page.url());
    await says(other, 'Ready.');
    for (const tab of [page, other]) await looks(tab, false);
    await isAway(page);
    await tell(ground, session, 'One.');
    const all = async () => [...(await told(page)), ...(await told(other))];
    for (const tab of [page, other]) await tab.getByRole('region', { name: 'lead asks' }).waitFor();
    await until('one tab tells', async () => (await all()).length > 0);
    await countTold(page);
    assert.deepEqual(await all(), ['lead asks: bash: touch one']);
    const holds = await looks(other, true);
    await until('one is looked at', async () => (await holds()) === 1);
    const before = await countTold(page);
    await answered(ground, session);
    for (const tab of [page, other]) await says(tab, 'Said one.');
    await until('it was seen', async () => (await countTold(page)) > before);
    await countTold(page);
    assert.equal((await all()).length, 1);
  }));

// > D16: What waits is told by a command of the person's own, once, when a page is there that nobody looks at
test("a command of one's own is run once for what waits while every page that is there is looked away from, and never while one is looked at", async () => {
  const ground = new Ground();
  try {
    mkdirSync(ground.path('config/midturn'));
    writeFileSync(ground.path('config/midturn/midturn.toml'), `[notify]\ncommand = 'echo "$NEED_LINE" >> ${ground.path('told')}'\n`);
    await ground.serve(ASKING, '--mode', 'ask');
    const session = await ground.begin('Go.', { answers: true });
    const lines = () => (existsSync(ground.path('told')) ? readFileSync(ground.path('told'), 'utf8').trim().split('\n') : []);
    await looking(async (page, context) => {
      await page.goto(ground.link(session));
      await says(page, 'Ready.');
      await context.addInitScript(stub);
      await page.reload();
      await says(page, 'Ready.');
      const holds = await looks(page, true);
      await until('it is looked at', async () => (await holds()) === 1);
      await tell(ground, session, 'One.');
      await page.getByRole('region', { name: 'lead asks' }).waitFor();
      await answered(ground, session);
      await says(page, 'Said one.');
      assert.deepEqual(lines(), []);
      await isAway(page);
      const other = await context.newPage();
      await other.goto(page.url());
      await says(other, 'Said one.');
      await isAway(other);
      await tell(ground, session, 'Two.');
      await until('it is told', () => lines().length > 0);
      await answered(ground, session);
      await says(page, 'Said two.');
      await until('the answer, too', () => lines().length > 1);
      await other.reload();
      await says(other, 'Said two.');
      assert.deepEqual(lines(), ['lead asks: bash: touch two', 'lead has ended: Said two.']);
    });
  } finally {
    await ground.end();
  }
});
