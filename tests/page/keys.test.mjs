// A person's own keys: chosen on the page, kept by this browser, refused where they can't be, and shown as they hold.

import assert from 'node:assert/strict';
import test from 'node:test';

import { lead, shown, until } from './ground.mjs';

const HEARD = lead(['Ready.', 'Heard.', 'Heard again.'].map((text) => `      - {takes: 200ms, text: "${text}"}\n`).join(''));
const TALKS = lead(`      - {takes: 60s, text: "${'The parser reads one word after the other. '.repeat(30)}"}\n`);

const log = (page) => page.getByRole('log');
const says = (page, text) => log(page).getByText(text, { exact: true }).waitFor();
const composer = (page) => page.getByRole('textbox', { name: 'Message to lead' });
const dialog = (page) => page.getByRole('dialog');
const change = (page, does) => dialog(page).getByRole('button', { name: `Change the key: ${does}` });
const shows = (page, key) => dialog(page).locator('kbd').getByText(key, { exact: true }).waitFor();

async function keys(page) {
  await page.getByRole('banner').locator('summary').click();
  await page.getByRole('button', { name: 'Keys', exact: true }).click();
}

/** Closes the dialog: what lies below it can't be written in before it is gone. */
async function closes(page) {
  await page.keyboard.press('Escape');
  await until('the dialog is closed', async () => (await dialog(page).count()) === 0);
}

/** Gives an action this key; the dialog is open. */
async function choose(page, does, key) {
  const button = change(page, does);
  if ((await button.getAttribute('aria-pressed')) !== 'true') await button.click();
  await button.press(key);
}

test('another key sends, the browser keeps that, and all go back to what they were', () =>
  shown(HEARD, async ({ page, ground, session }) => {
    await says(page, 'Ready.');
    await keys(page);
    await choose(page, 'new line', 'Control+j');
    await choose(page, 'send as the mode says', 'Control+Enter');
    await shows(page, 'Ctrl+Enter');
    await closes(page);
    await page.getByText('Ctrl+Enter sends, Ctrl+J is a new line').waitFor();
    await page.reload();
    await page.getByText('Ctrl+Enter sends, Ctrl+J is a new line').waitFor();
    await composer(page).pressSequentially('one');
    await composer(page).press('Enter');
    await composer(page).press('Control+j');
    await composer(page).pressSequentially('two');
    assert.equal(await composer(page).inputValue(), 'one\n\ntwo');
    await composer(page).press('Control+Enter');
    await says(page, 'Heard.');
    await keys(page);
    await dialog(page).getByRole('button', { name: 'As they were' }).click();
    await shows(page, 'Enter');
    await closes(page);
    await composer(page).fill('three');
    await composer(page).press('Enter');
    await says(page, 'Heard again.');
    const sent = (await ground.events(session, 'message_queued')).filter(({ from }) => from === 'user');
    assert.deepEqual(sent.map(({ text }) => text), ['one\n\ntwo', 'three']);
    assert.equal(await page.evaluate(() => localStorage.getItem('midturn.keys')), null);
  }));

// Each key that can't be, and what the page says of it.
const REFUSED = [
  ['Enter', 'Enter is for “send as the mode says” already: give that another key first'],
  ['x', 'X is typed into messages: hold Ctrl or Alt with it'],
  ['ArrowUp', 'ArrowUp moves and deletes: choose another key'],
];

test('a key that can not be is refused with the reason, and what held goes on to hold', () =>
  shown(TALKS, async ({ page, ground, session }) => {
    await log(page).getByText('The parser reads one').waitFor();
    await keys(page);
    for (const [key, words] of REFUSED) {
      await choose(page, 'close what is open; else stop the agent', key);
      await dialog(page).getByRole('alert').getByText(words).waitFor();
    }
    await shows(page, 'Escape');
    await choose(page, 'close what is open; else stop the agent', 'F8');
    await shows(page, 'F8');
    await closes(page);
    await composer(page).press('Escape');
    await composer(page).press('F8');
    await until('the stop', async () => (await ground.events(session, 'stop_requested')).length === 1);
  }));
