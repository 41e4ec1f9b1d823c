// What one has said and the agent has not read yet: it waits in sight, can be changed, and is delivered once or never.

import assert from 'node:assert/strict';
import test from 'node:test';

import { intercepted, lead, shown, until } from './ground.mjs';

/** A bash call that ends when the file of its name is there. */
const waits = (id) => `          - {id: ${id}, name: bash, input: {command: "echo ${id} begun; until [ -e ${id} ]; do sleep 0.05; done"}}\n`;
const heard = (...texts) => texts.map((text) => `      - {takes: 200ms, text: "${text}"}\n`).join('');

/** Its command ends when the file `b1` is there. */
const WORKING = lead(`      - text: A command.\n        tools:\n${waits('b1')}${heard('Heard.', 'Heard again.')}`);

const log = (page) => page.getByRole('log');
const composer = (page) => page.getByRole('textbox', { name: 'Message to lead' });
const queue = (page) => page.getByRole('region', { name: 'Queued messages' });
const row = (page, text) => queue(page).getByRole('listitem').filter({ hasText: text });
const press = (page, text, name) => row(page, text).getByRole('button', { name, exact: true }).click();
const status = (page, text) => page.getByRole('status').filter({ hasText: text }).waitFor({ state: 'attached' });
const works = (page, id = 'b1') => log(page).locator('pre.tail', { hasText: `${id} begun` }).waitFor();

async function send(page, text, mode) {
  if (mode) await page.getByLabel('Mode').selectOption({ label: mode });
  await composer(page).fill(text);
  await composer(page).press('Enter');
}

/** How often the agent has read this text. */
async function read(ground, session, text) {
  const { messages } = await ground.ask('GET', `sessions/${session}/agents/lead/conversation`);
  return JSON.stringify(messages).split(text).length - 1;
}

test('a message waits with its text, its urgency and its time, and its receipt says where it went in', () =>
  shown(WORKING, async ({ page, ground, session }) => {
    await works(page);
    await send(page, 'The parser first.');
    await row(page, 'The parser first.').getByText('⏳ Will inject at next safe point').waitFor();
    await row(page, 'The parser first.').getByText(/\b0:(?!00)\d\d/).waitFor();
    await send(page, 'No, at once.', 'Sooner');
    await row(page, 'No, at once.').getByText('⚡ Will inject ASAP (may skip tools)').waitFor();
    ground.write('b1');
    await log(page).getByText(/^✓ 2 messages injected together after bash at D, .* · answered$/).waitFor();
    assert.equal(await queue(page).count(), 0);
    const mine = await log(page).locator('.letter.yours .text').allInnerTexts();
    assert.deepEqual(mine.map((text) => text.trim()), ['The parser first.', 'No, at once.']);
  }));

test('what waits is edited, hurried and withdrawn, and each text is read once or never', () =>
  shown(WORKING, async ({ page, ground, session }) => {
    await works(page);
    for (const text of ['Take one.', 'Take two.', 'Take three.']) await send(page, text);
    await row(page, 'Take three.').waitFor();

    await press(page, 'Take one.', 'Withdraw');
    await status(page, 'Taken back');
    await log(page).getByText('⊘ Taken back before it was read').waitFor();
    assert.equal(await row(page, 'Take one.').count(), 0);

    await press(page, 'Take two.', 'Sooner');
    await row(page, 'Take two.').getByText('⚡').waitFor();

    await press(page, 'Take three.', 'Edit');
    const edit = page.getByRole('textbox', { name: 'Edit the queued message' });
    await edit.fill('Nothing of this.');
    // Escape closes what is open, and stops nobody.
    await edit.press('Escape');
    await row(page, 'Take three.').waitFor();
    await press(page, 'Take three.', 'Edit');
    await edit.fill('Take four.');
    await edit.press('Enter');
    await status(page, 'Changed');
    await row(page, 'Take four.').waitFor();

    ground.write('b1');
    await log(page).getByText('Heard.', { exact: true }).waitFor();
    const times = await Promise.all(['Take one.', 'Take two.', 'Take three.', 'Take four.'].map((text) => read(ground, session, text)));
    assert.deepEqual(times, [0, 1, 0, 1]);
    const returned = (await ground.events(session, 'message_returned')).map(({ reason }) => reason);
    assert.deepEqual(returned, ['withdrawn', 'superseded', 'superseded']);
    assert.deepEqual(await ground.events(session, 'stop_requested'), []);
  }));

test('an edit that comes too late is a draft again, and nothing is delivered twice', () =>
  shown(WORKING, async ({ page, ground, session }) => {
    await works(page);
    await send(page, 'The old words.');
    await press(page, 'The old words.', 'Edit');
    const edit = page.getByRole('textbox', { name: 'Edit the queued message' });
    await edit.fill('The new words.');
    // The edit is on its way while the message is read.
    await page.route('**/messages', async (route) => {
      ground.write('b1');
      await until('it is read', async () => (await ground.events(session, 'message_injected')).length === 1);
      await route.continue();
    });
    await intercepted(page);
    await edit.press('Enter');
    await page.getByText('Too late: it was read already').first().waitFor();
    assert.equal(await composer(page).inputValue(), 'The new words.');
    assert.deepEqual([await read(ground, session, 'The old words.'), await read(ground, session, 'The new words.')], [1, 0]);
    await page.unroute('**/messages');
    await composer(page).press('Enter');
    await log(page).getByText('Heard again.', { exact: true }).waitFor();
    assert.deepEqual([await read(ground, session, 'The old words.'), await read(ground, session, 'The new words.')], [1, 1]);
  }));

test('what is read while one still edits it is not taken away from under the fingers', () =>
  shown(WORKING, async ({ page, ground, session }) => {
    await works(page);
    await send(page, 'The old words.');
    await press(page, 'The old words.', 'Edit');
    const edit = page.getByRole('textbox', { name: 'Edit the queued message' });
    await edit.fill('The new wo');
    ground.write('b1');
    await log(page).getByText('Heard.', { exact: true }).waitFor();
    await edit.pressSequentially('rds.');
    await edit.press('Enter');
    await page.getByText('Too late: it was read already').first().waitFor();
    assert.equal(await composer(page).inputValue(), 'The new words.');
    assert.equal(await read(ground, session, 'The new words.'), 0);
  }));

test('after a stop what still waits is said and stays, until the next run reads it', () =>
  shown(WORKING, async ({ page, ground, session }) => {
    await works(page);
    await send(page, 'Left behind.', 'Later');
    await row(page, 'Left behind.').waitFor();
    await page.keyboard.press('Escape');
    await status(page, '1 message still waits');
    await status(page, 'Generation stopped');
    await row(page, 'Left behind.').getByText('⏳ Will inject when it runs again', { exact: false }).waitFor();
    assert.equal(await read(ground, session, 'Left behind.'), 0);
    await page.reload();
    await row(page, 'Left behind.').waitFor();
    await send(page, 'Go on.', 'Soft');
    await log(page).getByText(/^✓ 2 messages injected together at the start of a run/).waitFor();
    assert.equal(await read(ground, session, 'Left behind.'), 1);
    assert.equal(await queue(page).count(), 0);
  }));

test('each mode sends what it names', () => {
  const scenario = lead(`      - text: A command.\n        tools:\n${waits('b1')}      - text: Another one.\n        tools:\n${waits('b2')}${heard('Heard.')}`);
  return shown(scenario, async ({ page, ground, session }) => {
    await works(page);
    await send(page, 'In mode Soft.', 'Soft');
    await send(page, 'In mode Later.', 'Later');
    await page.reload();
    await works(page);
    const mode = await page.getByLabel('Mode').evaluate((select) => select.selectedOptions[0].label);
    assert.equal(mode, 'Later', 'it is remembered');
    await send(page, 'In mode Sooner.', 'Sooner');
    await send(page, 'In mode Now.', 'Now');
    await works(page, 'b2');
    await send(page, 'In mode Stop and send.', 'Stop and send');
    await log(page).getByText('Heard.', { exact: true }).waitFor();
    const queued = (await ground.events(session, 'message_queued')).filter(({ text }) => text.startsWith('In mode'));
    assert.deepEqual(Object.fromEntries(queued.map(({ text, urgency }) => [text.slice(8, -1), urgency]).slice(0, 4)), {
      Soft: 'after_tools', Later: 'follow_up', Sooner: 'next_boundary', Now: 'urgent',
    });
    const stops = await ground.events(session, 'stop_requested');
    assert.deepEqual(stops.map(({ reason, run }) => [reason, run]), [['supersede', 1]]);
    const [, second] = await ground.events(session, 'run_started');
    assert.ok(second.trigger.includes(queued.find(({ text }) => text === 'In mode Stop and send.').message), JSON.stringify(second));
  });
});
