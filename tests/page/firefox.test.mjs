// Debian's Firefox signs in, streams and stops: what the other tests find out in Chromium, in short.

import assert from 'node:assert/strict';
import test from 'node:test';

import { lookingInFirefox, shownInFirefox } from './firefox.mjs';
import { Ground, lead } from './ground.mjs';

const LONG = 'The parser reads one word after the other and never looks back. '.repeat(6);

const STREAMING = lead(
  `      - {takes: 60s, thinking: "Hm. ", text: "${LONG}"}\n` +
    ['Heard.', 'Heard again.'].map((text) => `      - {takes: 200ms, text: "${text}"}\n`).join(''),
);

const stop = (page) => page.getByRole('button', { name: 'Stop generating response' });
const composer = (page) => page.getByRole('textbox', { name: 'Message to lead' });
const log = (page) => page.getByRole('log');
const streams = (page) => log(page).getByText('The parser reads one').waitFor();
const isCut = (page) => log(page).getByText('Response interrupted').waitFor();
const isFocused = (page) => page.waitForFunction(() => document.activeElement?.id === 'draft');

test('Firefox: a link signs it in, its code is gone from the address, and a reload needs none', () =>
  shownInFirefox(STREAMING, async ({ page, context }) => {
    await composer(page).waitFor();
    assert.ok(!page.url().includes('code='), page.url());
    assert.deepEqual(await context.cookies(), []);
    await page.reload();
    await composer(page).waitFor();
    // Beside the conversation nothing scrolls: a second bar would take the room of the first.
    const room = () => [innerWidth - document.documentElement.clientWidth, document.documentElement.scrollHeight - innerHeight];
    assert.deepEqual(await page.evaluate(room), [0, 0]);
  }));

test('Firefox: words come while they are said, and a click on stop ends them', () =>
  shownInFirefox(STREAMING, async ({ page, ground, session }) => {
    await streams(page);
    const said = () => log(page).locator('.reply').last().innerText();
    const before = await said();
    await page.waitForFunction((length) => document.querySelector('.log .reply').innerText.length > length, before.length);
    await stop(page).click();
    await isCut(page);
    await isFocused(page);
    await page.getByRole('status').filter({ hasText: /stopped/i }).waitFor({ state: 'attached' });
    const [ended] = await ground.events(session, 'run_finished');
    assert.equal(ended.outcome, 'stopped');
    await page.reload();
    await isCut(page);
  }));

test('Firefox: Escape stops, and Enter sends what begins the next run', () =>
  shownInFirefox(STREAMING, async ({ page, ground, session }) => {
    await streams(page);
    await page.keyboard.press('Escape');
    await isCut(page);
    await isFocused(page);
    await page.keyboard.type('Go on.');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('Now.');
    await page.keyboard.press('Enter');
    await log(page).getByText('Heard.', { exact: true }).waitFor();
    assert.equal(await composer(page).inputValue(), '');
    const sent = await ground.events(session, 'message_queued');
    assert.deepEqual(sent.map(({ text }) => text), ['Go on.\nNow.']);
    assert.equal((await ground.events(session, 'stop_requested')).length, 1);
  }));

test('Firefox: a draft is there after a reload', () =>
  shownInFirefox(STREAMING, async ({ page }) => {
    await streams(page);
    await composer(page).fill('half a thought');
    await page.reload();
    await streams(page);
    assert.equal(await composer(page).inputValue(), 'half a thought');
  }));

// What makes the tests above fail where the page throws, or does what its policy refuses.
const WRONGS = [
  ['throws', () => setTimeout(() => { throw new Error('on purpose'); }), /on purpose/],
  ['shows a picture from elsewhere', () => document.body.append(Object.assign(new Image(), { src: 'data:,1' })), /Content Security Policy/],
  ['is styled by an attribute', () => document.body.setAttribute('style', 'color: red'), /Content Security Policy/],
];

for (const [what, wrong, complaint] of WRONGS) {
  test(`Firefox: a page that ${what} is a failure`, async () => {
    const ground = new Ground();
    try {
      await ground.serve(STREAMING);
      const session = await ground.begin();
      const looks = lookingInFirefox(async (page) => {
        const told = Promise.race([page.waitForEvent('pageerror'), page.waitForEvent('console')]);
        await page.goto(ground.link(session));
        await composer(page).waitFor();
        await page.evaluate(wrong);
        await told;
      });
      await assert.rejects(looks, complaint);
    } finally {
      await ground.end();
    }
  });
}
