// What is over, played back on the page: a scenario that `midturn open FILE` handed over, and a session that is only stored.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'node:test';

import { IDLE } from './busy.mjs';
import { Ground, looking, until } from './ground.mjs';
import { NARROW, look } from './whole.mjs';

/** 29 events in four seconds: a worker is corrected between two of its calls, after 2.5 s. */
const DEMO = fileURLToPath(new URL('../../scenarios/demo.yaml', import.meta.url));

/** How many events there are, and how many by 2 s, when the message is sent and waits. */
const [ALL, SENT] = [29, 16];

const controls = (page) => page.getByRole('region', { name: 'Playing back' });
const slider = (page) => controls(page).getByRole('slider', { name: 'Moment' });
const press = (page, name) => controls(page).getByRole('button', { name, exact: true }).click();
const log = (page, agent) => page.getByRole('log', { name: `Conversation with ${agent}` });
const row = (page, name) => page.getByRole('navigation', { name: 'Agents' }).getByRole('button', { name });
const shown = async (page) => Number(await slider(page).inputValue());
const chart = (page, of) => page.getByRole('group', { name: `Timeline of the ${of}` });

/** Goes to a moment as somebody who writes it. */
async function goTo(page, moment) {
  await controls(page).getByLabel('Go to a moment').fill(moment);
  await press(page, 'Go');
}

const isAt = (page, step, moment) =>
  until(`step ${step}, ${moment}`, async () => (await shown(page)) === step && (await slider(page).getAttribute('aria-valuetext')) === moment);

/** A page that shows the replay of a file; where less motion is asked for, all of it, and waits. */
async function replayed(file, look, { settings = {}, waits = true } = {}) {
  const ground = new Ground();
  try {
    await ground.serve(IDLE);
    await looking(async (page, context) => {
      if (waits) await page.emulateMedia({ reducedMotion: 'reduce' });
      await page.goto(ground.link(file));
      await controls(page).waitFor();
      await look({ ground, page, context });
    }, settings);
  } finally {
    await ground.end();
  }
}

// > D16: It is played back step by step, at a speed and to a moment, by pointer and by keyboard, and says in words where it is
test('a scenario is played step by step, to a moment, and by keys where nobody types', () =>
  replayed(DEMO, async ({ page }) => {
    await page.getByText('This is a replay of a scenario: nothing runs, and nothing can be sent.').waitFor();
    assert.equal(await page.title(), 'Replay: a worker is corrected between two of its calls · Midturn');
    assert.equal(await page.locator('#draft').count(), 0);
    await isAt(page, ALL, '4.0 s of 4.0 s');
    await slider(page).focus();
    await page.keyboard.press('Home');
    await isAt(page, 0, '0.0 s of 4.0 s');
    await page.getByText('No agents yet').waitFor();
    await press(page, 'One event on');
    await press(page, 'One event on');
    await row(page, /^idle lead|^works lead/).waitFor();
    await log(page, 'lead').getByText('Show me.').waitFor();
    // By keys, wherever the focus is but in a field.
    await page.evaluate(() => document.activeElement.blur());
    for (let n = 0; n < 6; n += 1) await page.keyboard.press('ArrowRight');
    await isAt(page, 8, '0.5 s of 4.0 s');
    await page.keyboard.press('ArrowLeft');
    await isAt(page, 7, '0.5 s of 4.0 s');
    await row(page, /^idle worker/).waitFor();
    await page.keyboard.press('ArrowLeft');
    await row(page, /^idle worker/).waitFor({ state: 'detached' });
    await page.keyboard.press('+');
    await page.keyboard.press('+');
    await controls(page).getByText('4×').waitFor();
    await page.keyboard.press('-');
    await controls(page).getByText('2×').waitFor();
    // To a moment: what waits then is seen, and nothing can be done about it.
    await goTo(page, '2s');
    await isAt(page, SENT, '2.0 s of 4.0 s');
    await row(page, /^works worker/).click();
    const waiting = page.getByRole('region', { name: 'Queued messages' });
    await waiting.getByText('The names are enough.').waitFor();
    assert.equal(await waiting.getByRole('button').count(), 0);
    assert.equal(await log(page, 'worker').getByText('at C').count(), 0);
    const field = controls(page).getByLabel('Go to a moment');
    await field.fill('soon');
    await field.press('Enter');
    await page.getByRole('status').getByText('Write a moment as in 2.5s, 2m or 1:04').waitFor();
    assert.deepEqual([await field.inputValue(), await field.getAttribute('aria-invalid'), await shown(page)], ['soon', 'true', SENT]);
    // In a field a space is a space.
    await field.fill('');
    await field.press('ArrowLeft');
    await field.press('Space');
    await field.pressSequentially('0:03');
    await field.press('Enter');
    await isAt(page, 21, '2.5 s of 4.0 s');
    await log(page, 'worker').getByText('Message injected after bash at C, 2 calls skipped').waitFor();
    await waiting.waitFor({ state: 'detached' });
    // A slider as every other.
    await slider(page).focus();
    await page.keyboard.press('Home');
    await isAt(page, 0, '0.0 s of 4.0 s');
    await page.keyboard.press('End');
    await isAt(page, ALL, '4.0 s of 4.0 s');
    await log(page, 'worker').getByText('There are files, and a history.').waitFor();
    await page.keyboard.press('ArrowLeft');
    await isAt(page, ALL - 1, '4.0 s of 4.0 s');
    // The beginning of a conversation is the same after many steps.
    await goTo(page, '0');
    await goTo(page, '9');
    await isAt(page, ALL, '4.0 s of 4.0 s');
    await log(page, 'worker').getByText('There are files, and a history.').waitFor();
    assert.deepEqual(await log(page, 'worker').getByText('The names are enough.').count(), 1);
  }));

// > D16: It plays as it was, at the speed that was chosen and without long pauses, and asks nothing of the server meanwhile
test('it plays from its beginning, as fast as one wants, to its end, and needs no server for it', () =>
  replayed(DEMO, async ({ ground, page, context }) => {
    const asked = [];
    await isAt(page, ALL, '4.0 s of 4.0 s');
    await press(page, 'Play');
    await until('it began anew', async () => (await shown(page)) < ALL);
    await press(page, 'Pause');
    const there = await shown(page);
    page.on('request', (request) => asked.push(request.url()));
    await ground.kill();
    for (let n = 0; n < 4; n += 1) await press(page, 'Faster');
    await press(page, 'Play');
    await isAt(page, ALL, '4.0 s of 4.0 s');
    await controls(page).getByRole('button', { name: 'Play', exact: true }).waitFor();
    assert.ok(there < ALL);
    assert.deepEqual(asked, []);
    await log(page, 'lead').getByText('finished after 1 turn').waitFor();
    // The next process's token comes to every tab, and takes nothing from this one.
    await goTo(page, '2s');
    await ground.serve(IDLE);
    const other = await context.newPage();
    await other.goto(ground.link());
    await other.getByText('No session yet.').waitFor();
    await isAt(page, SENT, '2.0 s of 4.0 s');
    await goTo(page, '3s');
    await isAt(page, 21, '2.5 s of 4.0 s');
  }, { waits: false }));

const PAUSE = `midturn: 1
name: one long pause
agents:
  - name: lead
    role: lead
    prompt: Go.
    model: [{takes: 1h, text: Done.}]
`;

test('no pause is longer than two seconds, and while nobody looks it waits', async () => {
  const ground = new Ground();
  try {
    ground.write('../pause.yaml', PAUSE);
    await ground.serve(IDLE);
    await looking(async (page) => {
      await page.clock.install({ time: 0 });
      await page.clock.pauseAt(1000);
      await page.goto(ground.link('../pause.yaml'));
      await until('it plays', async () => {
        await page.clock.runFor(20);
        return (await slider(page).count()) === 1;
      });
      await isAt(page, 4, '0.0 s of 3600.0 s');
      await page.evaluate(() => {
        Object.defineProperty(document, 'hidden', { configurable: true, get: () => globalThis.isAway ?? false });
        globalThis.isAway = true;
        document.dispatchEvent(new Event('visibilitychange'));
      });
      await page.clock.runFor(60_000);
      assert.equal(await shown(page), 4);
      await page.evaluate(() => {
        globalThis.isAway = false;
        document.dispatchEvent(new Event('visibilitychange'));
      });
      await page.clock.runFor(1_500);
      assert.equal(await shown(page), 4);
      await page.clock.runFor(1_000);
      await isAt(page, 6, '3600.0 s of 3600.0 s');
    });
  } finally {
    await ground.end();
  }
});

// > D16: While it waits, and while nobody looks, nothing is drawn
test('nothing is drawn while it waits', () =>
  replayed(DEMO, async ({ page }) => {
    await goTo(page, '2s');
    await isAt(page, SENT, '2.0 s of 4.0 s');
    const frames = await page.evaluate(async () => {
      let count = 0;
      const { requestAnimationFrame: asks } = globalThis;
      globalThis.requestAnimationFrame = (draws) => {
        count += 1;
        return asks(draws);
      };
      // An agent works at this moment: a clock would go on each second.
      await new Promise((done) => setTimeout(done, 2500));
      return count;
    });
    assert.equal(frames, 0);
  }));

// > D16: A click on the timeline's axis goes to that moment, and what comes later is pale
test('the timeline shows where one is, a click on it goes there, and so does a button of what one is at', () =>
  replayed(DEMO, async ({ page }) => {
    await page.getByRole('tab', { name: 'Timeline' }).click();
    assert.equal(await page.getByRole('tab', { name: 'Diff' }).count(), 0);
    await chart(page, 'replay').getByRole('button', { name: /^worker: bash ls/ }).waitFor({ state: 'attached' });
    const pale = page.locator('.here .pale');
    const all = Number(await page.locator('.here').getAttribute('width'));
    await slider(page).focus();
    await page.keyboard.press('Home');
    await until('all of it is pale', async () => Number(await pale.getAttribute('width')) > all - 30);
    const axis = await page.locator('#chart .instants').boundingBox();
    await page.mouse.click(axis.x + all / 2, axis.y + 10);
    await until('one is somewhere in it', async () => (await shown(page)) > 0 && (await shown(page)) < ALL);
    assert.ok(Number(await pale.getAttribute('width')) < all - 30);
    const letter = chart(page, 'replay').getByRole('button', { name: /^user to worker, next_boundary/ });
    await letter.focus();
    await page.getByRole('button', { name: 'Go to this moment' }).click();
    await isAt(page, SENT, '2.0 s of 4.0 s');
    // The keys of the timeline are its own; Space plays.
    await letter.focus();
    const before = await page.locator('#chart .body').getAttribute('width');
    await page.keyboard.press('+');
    await until('it is nearer', async () => (await page.locator('#chart .body').getAttribute('width')) !== before);
    await controls(page).getByText('1×').waitFor();
    assert.equal(await shown(page), SENT);
    await page.keyboard.press('Space');
    await until('it plays on', async () => (await shown(page)) > SENT);
  }));

// > D16: A message of a replay is moved as one of a session is
test('a message of a replay is moved, and what would have been otherwise is shown', () =>
  replayed(DEMO, async ({ page }) => {
    await page.getByRole('tab', { name: 'Timeline' }).click();
    await chart(page, 'replay').getByRole('button', { name: /^user to worker, next_boundary/ }).focus();
    await page.keyboard.press('m');
    await page.keyboard.press('Shift+ArrowRight');
    await page.keyboard.press('Shift+ArrowRight');
    assert.equal(await shown(page), ALL);
    await page.keyboard.press('Enter');
    await page.getByRole('listitem').filter({ hasText: 'worker: call w2: skipped at' }).waitFor();
    await page.getByRole('group', { name: 'Timeline with the message moved' }).waitFor();
    await page.getByRole('button', { name: 'Back to the replay' }).click();
    await chart(page, 'replay').waitFor();
  }));

// > D16: It is whole for everybody: light and dark, 360 and 1280 pixels wide, with names, shapes and words beside colour
test('it is whole for everybody, in a conversation and on the timeline', () =>
  replayed(DEMO, async ({ page }) => {
    await look(page, 'a replay');
    await goTo(page, '2s');
    await row(page, /^works worker/).click();
    await page.getByRole('region', { name: 'Queued messages' }).waitFor();
    await look(page, 'replay', 'wide dark');
    await page.getByRole('tab', { name: 'Timeline' }).click();
    await page.getByRole('button', { name: 'All', exact: true }).click();
    await look(page, 'replay timeline', 'wide light');
    await page.getByLabel('What the shapes mean').click();
    await page.getByText('what comes later is pale').waitFor();
    await page.getByLabel('What the shapes mean').click();
    await page.setViewportSize(NARROW);
    await page.getByRole('tab', { name: 'Conversation' }).click();
    await isAt(page, SENT, '2.0 s of 4.0 s');
  }));

/** A session that has ended, opened by a page of the process that comes after. */
async function stored(look) {
  const ground = new Ground();
  try {
    await ground.serve(readFileSync(DEMO, 'utf8'));
    const session = await ground.begin();
    await until('it rests', async () => (await ground.events(session, 'run_finished')).filter(({ agent }) => agent === 'lead').length === 2);
    await ground.ended('SIGTERM');
    await ground.serve(IDLE);
    await looking(async (page) => {
      await page.goto(ground.link(session));
      await controls(page).waitFor();
      await look({ ground, page, session });
    });
  } finally {
    await ground.end();
  }
}

test('a session that is only stored is shown whole, played back from its beginning, and moved as ever', () =>
  stored(async ({ ground, page, session }) => {
    await page.getByText('This session is only stored.').waitFor();
    const [all] = [Number(await slider(page).getAttribute('max'))];
    assert.equal(await shown(page), all);
    assert.equal(all, (await ground.ask('GET', `sessions/${session}`)).last_seq);
    await log(page, 'lead').getByText('this is what there is to see').waitFor();
    await slider(page).focus();
    await page.keyboard.press('Home');
    await page.getByText('This session is only stored, and played back: nothing runs.').waitFor();
    await page.getByText('No agents yet').waitFor();
    await page.keyboard.press('Space');
    await page.keyboard.press('+');
    await until('it plays', async () => (await shown(page)) > 3);
    await page.keyboard.press('End');
    await page.getByText('This session is only stored.').waitFor();
    await page.getByRole('tab', { name: 'Diff' }).waitFor();
    // At the beginning too all of its messages can be moved.
    await page.keyboard.press('Home');
    await page.getByRole('tab', { name: 'Timeline' }).click();
    await chart(page, 'session').getByRole('button', { name: /^lead: model/ }).first().waitFor();
    await look(page, 'a stored session is played back');
  }));

test('a replay that is not kept any more says what to do, and what is played already needs nothing', () =>
  replayed(DEMO, async ({ ground, page }) => {
    for (let n = 0; n < 4; n += 1) ground.link(DEMO);
    await goTo(page, '2s');
    await isAt(page, SENT, '2.0 s of 4.0 s');
    await page.reload();
    await page.getByText('this replay is not kept here any more: open its file again').first().waitFor();
    await page.getByRole('button', { name: 'Begin a session' }).waitFor();
  }));

test('of more than 20,000 events the end is shown, and why it cannot be played', async () => {
  const ground = new Ground();
  try {
    const call = (n) => (_, at) => ({ id: `${n}-${at}`, name: 'read', input: { path: 'n' } });
    const turn = (_, n) => ({ text: `Turn ${n}.`, tools: Array.from({ length: 60 }, call(n)) });
    const model = [...Array.from({ length: 170 }, turn), { text: 'The last word.' }];
    ground.write('../long.yaml', JSON.stringify({ midturn: 1, name: 'long', settings: { max_turns: 500 }, agents: [{ name: 'lead', role: 'lead', prompt: 'Go.', model }] }));
    await ground.serve(IDLE);
    await looking(async (page) => {
      await page.goto(ground.link('../long.yaml'));
      await log(page, 'lead').getByText('The last word.').waitFor();
      await page.getByText('There is too much of it to be played back: more than 20,000 events.').waitFor();
      assert.equal(await slider(page).count(), 0);
    });
  } finally {
    await ground.end();
  }
});
