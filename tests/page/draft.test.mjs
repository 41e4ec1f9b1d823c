// What one has typed is one's own: no event, error or refusal overwrites it, and sent again it is one message.

import assert from 'node:assert/strict';
import test from 'node:test';

import { lead, once, shown, until } from './ground.mjs';

const DONE = lead(['Ready.', 'Heard.', 'Heard again.'].map((text) => `      - {takes: 200ms, text: "${text}"}\n`).join(''));

const log = (page) => page.getByRole('log');
const composer = (page, agent = 'lead') => page.getByRole('textbox', { name: `Message to ${agent}` });
const queue = (page) => page.getByRole('region', { name: 'Queued messages' });
const refused = (page) => page.locator('.composer .refused');
const board = (page, name) => page.getByRole('navigation').getByRole('button').filter({ has: page.locator('.name').getByText(name, { exact: true }) });
const says = (page, text) => log(page).getByText(text, { exact: true }).waitFor();
const holds = (page, text, agent = 'lead') => until(`the draft ${text}`, async () => (await composer(page, agent).inputValue()) === text);

/** A session whose lead is ready. */
const ready = (look) => shown(DONE, async (all) => {
  await says(all.page, 'Ready.');
  await look(all);
});

/** What a person has sent. */
async function sent(ground, session) {
  return (await ground.events(session, 'message_queued')).filter(({ from }) => from === 'user');
}

/** Answers the page's next message with this problem. */
async function refuse(page, status, code, detail, headers = {}) {
  const body = JSON.stringify({ type: 'about:blank', title: '', status, code, detail });
  await once(page, '**/messages', (route) => route.fulfill({ status, contentType: 'application/problem+json', headers, body }));
}

test('each agent has a draft, which events leave alone and a reload brings back', () =>
  ready(async ({ page, ground, session }) => {
    await composer(page).fill('half a thought');
    await ground.ask('POST', `sessions/${session}/agents`, { name: 'other' });
    await board(page, 'other').click();
    assert.equal(await composer(page, 'other').inputValue(), '');
    await composer(page, 'other').fill('another half');
    await board(page, 'lead').click();
    await ground.ask('POST', `sessions/${session}/agents/lead/messages`, { text: 'From elsewhere.' });
    await says(page, 'Heard.');
    assert.equal(await composer(page).inputValue(), 'half a thought');
    await page.reload();
    await holds(page, 'half a thought');
    await board(page, 'other').click();
    await holds(page, 'another half', 'other');
    assert.equal((await sent(ground, session)).length, 1);
  }));

// Each refusal, and what the page says of it.
const REFUSALS = [
  [429, 'too_many_requests', 'x', /Too many requests.* \(after \d{1,2}:\d\d/, { 'Retry-After': '30' }],
  [409, 'limit', 'the agent has reached max_turns', /max_turns: raise it$/],
  [422, 'too_large', 'the text has 300 kB', /300 kB: shorten it/],
  [503, 'shutting_down', 'x', /shutting down: send it again/, { 'Retry-After': '2' }],
];

test('a refusal says why, and until when, and the draft stays to be sent again', () =>
  ready(async ({ page, ground, session }) => {
    await composer(page).fill('Mind the gap.');
    for (const [status, code, detail, words, headers] of REFUSALS) {
      await refuse(page, status, code, detail, headers);
      await composer(page).press('Enter');
      await refused(page).getByText(words).waitFor();
      await holds(page, 'Mind the gap.');
    }
    await page.reload();
    await holds(page, 'Mind the gap.');
    await composer(page).press('Enter');
    await says(page, 'Heard.');
    assert.equal(await composer(page).inputValue(), '');
    assert.deepEqual((await sent(ground, session)).map(({ text }) => text), ['Mind the gap.']);
  }));

test('a stop that is refused says until when, and can be asked for again; the draft stays', () => {
  const words = 'The parser reads one word after the other and never looks back. '.repeat(20);
  return shown(lead(`      - {takes: 60s, text: "${words}"}\n`), async ({ page, ground, session }) => {
    const stop = page.getByRole('button', { name: 'Stop generating response' });
    await log(page).getByText('The parser').waitFor();
    await composer(page).fill('half a thought');
    const body = JSON.stringify({ status: 429, code: 'too_many_requests', detail: 'x' });
    const headers = { 'Retry-After': '30' };
    await once(page, '**/stop', (route) => route.fulfill({ status: 429, contentType: 'application/problem+json', headers, body }));
    await page.keyboard.press('Escape');
    await refused(page).getByText(/Too many requests.* \(after \d{1,2}:\d\d/).waitFor();
    assert.ok(await stop.isEnabled());
    assert.deepEqual(await ground.events(session, 'stop_requested'), []);
    await page.keyboard.press('Escape');
    await log(page).getByText('Response interrupted').waitFor();
    assert.equal(await composer(page).inputValue(), 'half a thought');
  });
});

test('what is typed while a message is under way stays, and what came back waits beside it', () =>
  ready(async ({ page, ground, session }) => {
    let let_go = () => {};
    const typed = new Promise((done) => {
      let_go = () => done(undefined);
    });
    await once(page, '**/messages', async (route) => {
      await typed;
      await route.abort();
    });
    await composer(page).fill('The first.');
    await composer(page).press('Enter');
    await queue(page).getByText('Sending …').waitFor();
    await composer(page).pressSequentially('The second.');
    let_go();
    await queue(page).getByText('Not sent.').waitFor();
    assert.equal(await composer(page).inputValue(), 'The second.');
    await queue(page).getByRole('button', { name: 'Send again' }).click();
    await says(page, 'Heard.');
    assert.equal(await composer(page).inputValue(), 'The second.');
    assert.deepEqual((await sent(ground, session)).map(({ text }) => text), ['The first.']);
  }));

test('a message whose answer was lost is one message, however often it is sent', () =>
  ready(async ({ page, ground, session, context }) => {
    // The page hears neither the answer nor the event: whether it arrived it can't know.
    await once(page, '**/messages', async (route) => {
      await context.setOffline(true);
      await ground.ask('POST', `sessions/${session}/agents/lead/messages`, route.request().postDataJSON());
      await route.abort();
    });
    await composer(page).fill('Only once.');
    await composer(page).press('Enter');
    await holds(page, 'Only once.');
    await refused(page).getByText('nothing is lost here, try again').waitFor();
    await page.reload({ timeout: 5000 }).catch(() => undefined);
    await context.setOffline(false);
    await page.reload();
    await holds(page, 'Only once.');
    await composer(page).press('Enter');
    await page.getByRole('status').filter({ hasText: 'Sent' }).waitFor({ state: 'attached' });
    await holds(page, '');
    await says(page, 'Heard.');
    assert.deepEqual((await sent(ground, session)).map(({ text }) => text), ['Only once.']);
  }));

test('Enter while one composes a word sends nothing, and Shift+Enter is a new line', () =>
  ready(async ({ page, ground, session, context }) => {
    const browser = await context.newCDPSession(page);
    await composer(page).focus();
    await browser.send('Input.imeSetComposition', { text: 'にほん', selectionStart: 3, selectionEnd: 3 });
    // While one composes a browser says Enter with this code, or says that it composes.
    for (const key of [{ isComposing: true }, { keyCode: 229 }]) {
      await composer(page).evaluate((draft, more) => {
        draft.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true, ...more }));
      }, key);
    }
    await browser.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', key: 'Process', windowsVirtualKeyCode: 229 });
    await browser.send('Input.insertText', { text: '日本' });
    assert.equal(await composer(page).inputValue(), '日本');
    await composer(page).press('Shift+Enter');
    await composer(page).pressSequentially('2');
    assert.deepEqual(await sent(ground, session), []);
    await composer(page).press('Enter');
    await says(page, 'Heard.');
    assert.deepEqual((await sent(ground, session)).map(({ text }) => text), ['日本\n2']);
  }));

test('a mebibyte that is pasted is said to be too long: nothing hangs, and nothing is cut in silence', () =>
  ready(async ({ page, ground, session, context }) => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const paste = async (text) => {
      await page.evaluate((text) => navigator.clipboard.writeText(text), text);
      await page.keyboard.press('Control+V');
    };
    await composer(page).fill('Look at this: ');
    await paste('a line of words\n'.repeat(1 << 16));
    await refused(page).getByText(/Too long: that makes 1\.0 MB.*262\.1 kB.*name a file/).waitFor();
    assert.equal(await composer(page).inputValue(), 'Look at this: ');
    // Bytes count, not characters; what still fits is taken whole.
    await paste('語'.repeat(100_000));
    await refused(page).getByText(/that makes 300\.0 kB/).waitFor();
    const fits = '語'.repeat(80_000);
    await paste(fits);
    await until('it is pasted', async () => (await composer(page).inputValue()) === `Look at this: ${fits}`);
    assert.equal(await refused(page).count(), 0);
    await composer(page).press('Enter');
    await says(page, 'Heard.');
    assert.deepEqual((await sent(ground, session)).map(({ text }) => text.length), [80_014]);
  }));
