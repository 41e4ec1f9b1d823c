// The timeline of a session: what it shows, how one goes through it, what it costs, and what would have been.

import assert from 'node:assert/strict';
import test from 'node:test';

import { busy, furnish, says } from './busy.mjs';
import { Ground, looking, once, until } from './ground.mjs';
import { look } from './whole.mjs';

const ELEMENTS_MAX = 5_000;

/** A lead with two agents: one is corrected between two calls, of the other one call fails. */
const TEAM = `midturn: 1
name: page
agents:
  - name: lead
    role: lead
    model:
      - text: Two of us.
        tools:
          - {id: s1, name: spawn_agent, input: {name: worker, prompt: Go.}}
          - {id: s2, name: spawn_agent, input: {name: tester, prompt: Test.}}
          - {id: w1, name: wait_agents, input: {names: [worker, tester]}}
      - {takes: 300ms, text: Done.}
  - name: worker
    start: spawned
    model:
      - text: I begin.
        tools:
          - {id: b1, name: bash, input: {command: "until [ -e GO ]; do sleep 0.05; done"}}
          - {id: b2, name: bash, input: {command: "cargo test"}}
          - {id: b3, name: glob, input: {pattern: "*.rs"}}
      - {takes: 400ms, text: Only the parser.}
  - name: tester
    start: spawned
    model:
      - text: I test.
        tools: [{id: t1, name: bash, input: {command: "exit 1"}}, {id: t2, name: read, input: {path: nothing}}]
      - {takes: 300ms, text: One fails.}
`;

const TEXT = 'Only the parser, please.';

const chart = (page) => page.getByRole('group', { name: 'Timeline of the session' });
const item = (page, says) => chart(page).getByRole('button', { name: says });
const details = (page) => page.locator('#timeline-says');
const box = (page) => page.locator('#chart');
const width = (page) => box(page).evaluate((one) => Number(one.querySelector('.body').getAttribute('width')));
const focused = (page) => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? '');
/** What is drawn is what is seen: all of it, wherever it stands. */
const all = (page) => page.getByRole('button', { name: 'All', exact: true }).click();
const openTab = (page) => page.getByRole('tab', { name: 'Timeline' }).click();

/** A page that shows the timeline of a team whose worker is corrected, and rests since, if it is to. */
async function team(look, { rests = true } = {}) {
  const ground = new Ground();
  try {
    await ground.serve(TEAM.replace('GO', ground.path('project/go')));
    const session = await ground.begin();
    await looking(async (page) => {
      await page.goto(ground.link(session));
      await openTab(page);
      await until('the worker calls', async () => (await ground.events(session, 'tool_started')).some(({ tool }) => tool === 'b1'));
      await ground.ask('POST', `sessions/${session}/agents/worker/messages`, { id: 'fix', text: TEXT, urgency: 'next_boundary' });
      const end = async () => {
        ground.write('go');
        await until('all rest', async () => (await ground.events(session, 'run_finished')).some(({ agent }) => agent === 'lead'));
        await item(page, 'lead: its run ended, finished').waitFor();
      };
      if (rests) await end();
      await look({ ground, session, page, end });
    });
  } finally {
    await ground.end();
  }
}

// > D16: It is whole for everybody: light and dark, 360 and 1280 pixels wide, with names, shapes and words beside colour
test('the timeline is whole for everybody, while agents work and once they rest', () =>
  team(async ({ page, end }) => {
    await item(page, /^worker: bash until/).waitFor();
    await look(page, 'timeline live');
    await end();
    await all(page);
    await item(page, /^user to worker, next_boundary: Only the parser/).focus();
    await details(page).getByText(/^user to worker, next_boundary: Only the parser, please. \(injected at C after /).waitFor();
    await look(page, 'timeline', 'wide light');
    for (const says of [/^worker: glob, skipped: it never ran/, /^tester: bash exit 1, failed after/, 'worker: 1 message injected at C, 2 calls skipped']) {
      await item(page, says).first().waitFor({ state: 'attached' });
    }
    // Nothing stands on another's name: no two texts of it overlap.
    const boxes = await chart(page).evaluate((all) => [...all.querySelectorAll('.labels text')].map((one) => one.getBoundingClientRect().toJSON()));
    assert.ok(boxes.length > 5);
    for (const [nth, a] of boxes.entries()) {
      for (const b of boxes.slice(nth + 1)) assert.ok(a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 3 || b.bottom <= a.top + 3);
    }
    await page.getByLabel('What the shapes mean').click();
    await page.getByText('skipped, never ran').waitFor();
    await look(page, 'its legend');
  }, { rests: false }));

// > D16: Everything in it is reached by the keyboard: along time, from agent to agent, and on to the conversation
test('every bar, message and mark is reached by the arrow keys, and Enter opens the conversation', () =>
  team(async ({ page }) => {
    const drawn = await chart(page).locator('[data-key]').evaluateAll((items) => items.map((one) => one.getAttribute('data-key')));
    assert.equal(await chart(page).locator('[tabindex="0"]').count(), 1);
    await chart(page).locator('[tabindex="0"]').focus();
    const seen = new Set();
    const here = () => page.evaluate(() => document.activeElement?.getAttribute('data-key'));
    const presses = async (key) => {
      await page.keyboard.press(key);
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      return here();
    };
    for (let up = 0; up < 4; up += 1) await presses('ArrowUp');
    for (let lane = 0; lane < 3; lane += 1) {
      let at = await presses('Home');
      for (let last; at !== last; ) {
        seen.add(at);
        [last, at] = [at, await presses('ArrowRight')];
        assert.ok(at, 'the focus is lost');
      }
      await presses('ArrowDown');
    }
    for (const key of drawn) assert.ok(seen.has(key), `${key} is drawn and not reached`);
    // Those before what is drawn, too: their numbers have no gaps.
    const bars = [...seen].filter((key) => key.startsWith('b')).map((key) => Number(key.slice(1)));
    assert.deepEqual(bars.sort((a, b) => a - b), [...bars.keys()]);
    assert.ok(bars.length >= drawn.filter((key) => key.startsWith('b')).length);
    assert.match(await focused(page), /^tester: /);
    assert.equal(await chart(page).locator('[tabindex="0"]').count(), 1);
    // What one is at is seen.
    const [inner, outer] = [await page.evaluate(() => document.activeElement.getBoundingClientRect().toJSON()), await box(page).boundingBox()];
    assert.ok(inner.left >= outer.x && inner.right <= outer.x + outer.width && inner.bottom <= outer.y + outer.height);
    await page.keyboard.press('Enter');
    await page.getByRole('log', { name: 'Conversation with tester' }).waitFor();
    assert.equal(await page.getByRole('tab', { name: 'Conversation' }).getAttribute('aria-selected'), 'true');
    // Any letter that means nothing there still goes to the composer.
    await openTab(page);
    await item(page, /^lead: model/).first().focus();
    await page.keyboard.press('x');
    assert.equal(await page.locator('#draft').inputValue(), 'x');
  }));

// > D16: What goes on grows, at most once a second, and only while one looks
test('what goes on grows once a second, and nothing is drawn while the page or the tab is hidden', () =>
  team(async ({ page }) => {
    await item(page, /^worker: bash until/).waitFor();
    const says = () => item(page, /^worker: bash until/).getAttribute('aria-label');
    const before = await says();
    await until('it goes on', async () => (await says()) !== before);
    // How often the picture changes in three seconds.
    const changes = () => page.evaluate(() => new Promise((done) => {
      let changes = 0;
      const observer = new MutationObserver(() => (changes += 1));
      observer.observe(document.getElementById('chart') ?? document.getElementById('shown'), { subtree: true, childList: true, attributes: true });
      setTimeout(() => done((observer.disconnect(), changes)), 3000);
    }));
    const live = await changes();
    assert.ok(live >= 2 && live <= 4, `${live} changes in 3 s`);
    await page.evaluate(() => {
      Object.defineProperty(document, 'hidden', { value: true, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    });
    await until('what was due is drawn', async () => (await changes()) === 0);
    await page.evaluate(() => {
      Object.defineProperty(document, 'hidden', { value: false, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    });
    assert.ok((await changes()) > 0);
    await page.getByRole('tab', { name: 'Plan' }).click();
    await page.locator('.chart').waitFor({ state: 'detached' });
    await until('nothing is drawn', async () => (await changes()) === 0);
  }, { rests: false }));

/** Where an item begins in the window, in pixels. */
const left = (page, says) => item(page, says).first().evaluate((one) => one.querySelector('path').getBoundingClientRect().left);

// > D16: Zooming keeps the place below the pointer, and the end is followed until one scrolls back
test('zooming keeps the place below the pointer; the end is followed until one scrolls back, and again by a button', () =>
  team(async ({ page }) => {
    const bash = /^worker: bash until/;
    await all(page);
    const wide = await width(page);
    const place = await left(page, bash);
    const { y } = await box(page).boundingBox();
    await page.mouse.move(place, y + 60);
    await page.keyboard.down('Control');
    for (let n = 0; n < 3; n += 1) {
      await page.mouse.wheel(0, -100);
      await until('it is nearer', async () => (await width(page)) > wide * 1.5 ** (n + 1) * 0.9);
      // The pointer stands a point or two beside the bar's edge, and what is between them is nearer, too.
      assert.ok(Math.abs((await left(page, bash)) - place) <= 2 * 1.5 ** (n + 1), `${await left(page, bash)} was ${place}`);
    }
    await page.keyboard.up('Control');
    const isAtEnd = () => box(page).evaluate((one) => one.scrollLeft + one.clientWidth >= one.scrollWidth - 2);
    await box(page).evaluate((one) => (one.scrollLeft = 0));
    const follow = page.getByRole('button', { name: 'To the end' });
    await follow.click();
    await until('the end', isAtEnd);
    await follow.waitFor({ state: 'detached' });
    await item(page, 'lead: its run ended, finished').focus();
    const near = await width(page);
    await page.keyboard.press('-');
    await until('it is farther', async () => (await width(page)) < near);
    await page.keyboard.press('+');
    await until('it is nearer', async () => (await width(page)) === near);
    await page.keyboard.press('0');
    await until('it is all there', async () => (await width(page)) === wide);
    assert.equal(await page.locator('#draft').inputValue(), '');
  }));

// > D16: Of 10,000 events no more is in the page than is seen, however near or far one looks
test('of 10,000 events no more is in the page than is seen, however near or far one looks', async (t) => {
  const ground = new Ground();
  try {
    furnish(ground);
    await ground.serve(busy({ events: 10_000, seconds: 200 }));
    const session = await ground.begin();
    await until('10,000 events, and all speak', () => says(ground, session, 10_000));
    await looking(async (page) => {
      await page.goto(ground.link(session));
      await page.locator('.reply.streaming').waitFor();
      await openTab(page);
      await chart(page).locator('.item').first().waitFor();
      const elements = () => page.evaluate(() => document.querySelectorAll('*').length);
      let [most, widest] = [0, 0];
      const looks = async (what) => {
        const there = await elements();
        [most, widest] = [Math.max(most, there), Math.max(widest, await width(page))];
        assert.ok(there <= ELEMENTS_MAX, `${there} elements, ${what}`);
      };
      const items = () => chart(page).locator('.item').count();
      const goesTo = async (left) => {
        await box(page).evaluate((one, left) => (one.scrollLeft = left), left);
        await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      };
      await all(page);
      await looks('all of it');
      for (let n = 0; n < 14; n += 1) {
        await page.getByRole('button', { name: 'Nearer', exact: true }).click();
        for (const share of [0, 0.3, 0.6, 1]) {
          const left = await box(page).evaluate((one, share) => share * one.scrollWidth, share);
          await goesTo(left);
          await looks(`${n} steps nearer, ${share}`);
          // Before the lead's first call nothing happens, and a session with few steps has wide ones: up to six windows.
          for (let on = 0; on < 6 && share === 0 && (await items()) === 0; on += 1) await goesTo((on + 1) * 800);
          assert.ok((await items()) > 0, `nothing is seen ${n} steps nearer, at ${share}`);
        }
      }
      t.diagnostic(`${most} elements at most, ${widest} pixels wide`);
      assert.ok(widest > 20_000);
    });
  } finally {
    await ground.end();
  }
});

/** What the server answers who plays a session of a message of the worker's sooner: made of the session's own events. */
async function replayed(ground, session) {
  const { events } = await ground.ask('GET', `sessions/${session}/log?limit=1000`);
  const moved = ({ message, messages }) => message === 'fix' || (Array.isArray(messages) && messages.includes('fix'));
  return {
    before: { events },
    after: { events: events.filter((event) => !moved(event)) },
    changes: ['message fix to worker: injected at C → not at all'],
    spared: { calls: 2, files: ['src/late.rs'], tokens: 1290 },
  };
}

/** Answers what is asked of `POST /v1/replays`, and says what was asked. */
async function plays(page, answer, status = 200) {
  const asked = [];
  await once(page, '**/v1/replays', async (route) => {
    asked.push(route.request().postDataJSON());
    const contentType = status === 200 ? 'application/json' : 'application/problem+json';
    await route.fulfill({ status, contentType, body: JSON.stringify(answer) });
  });
  return asked;
}

const LETTER = /^user to worker, next_boundary/;

// > D16: A message is moved, by the keys or by a pointer, and the session is played with it: both timelines, and what would have been otherwise
test('a message is moved by the keys or by a pointer, and both timelines are shown, with what would have been otherwise', () =>
  team(async ({ ground, session, page }) => {
    const asked = await plays(page, await replayed(ground, session));
    await all(page);
    await item(page, LETTER).focus();
    await page.keyboard.press('m');
    for (const key of ['ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowRight', 'Shift+ArrowLeft']) await page.keyboard.press(key);
    await details(page).getByText('Moved by -1.2s').waitFor();
    await page.locator('.ghost').getByText('-1.2s').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.ghost').waitFor({ state: 'detached' });
    await page.keyboard.press('m');
    for (const key of ['ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowRight']) await page.keyboard.press(key);
    await page.keyboard.press('Enter');
    const [before, after] = ['Timeline as it was', 'Timeline with the message moved'].map((name) => page.getByRole('group', { name }));
    await before.getByRole('button', { name: LETTER }).waitFor();
    await after.getByRole('button', { name: /^lead: model/ }).first().waitFor();
    assert.equal(await after.getByRole('button', { name: LETTER }).count(), 0);
    assert.deepEqual(asked, [{ session, shift: ['fix=+500ms'] }]);
    for (const words of ['With the message +500ms', 'injected at C → not at all', '2 calls spared, 1.2k tokens spared', 'Not written: src/late.rs']) {
      await page.getByRole('region', { name: 'Timeline' }).getByText(words).waitFor();
    }
    await look(page, 'what if');
    await page.getByRole('button', { name: 'Back to the session' }).click();
    await item(page, LETTER).waitFor();

    // The same by a pointer: pulled along time, and let go.
    const pulled = await plays(page, await replayed(ground, session));
    const { x, y } = await item(page, LETTER).locator('circle').boundingBox();
    await page.mouse.move(x + 3, y + 3);
    await page.mouse.down();
    await page.mouse.move(x - 40, y + 3, { steps: 4 });
    await page.locator('.ghost').waitFor();
    await page.mouse.up();
    await after.waitFor();
    assert.equal(pulled.length, 1);
    assert.match(pulled[0].shift[0], /^fix=-\d+(\.\d+)?m?s$/);
    await page.getByRole('button', { name: 'Back to the session' }).click();

    // Played by the server itself, ten seconds later: nothing would have been skipped.
    await item(page, LETTER).focus();
    await page.keyboard.press('m');
    for (let n = 0; n < 10; n += 1) await page.keyboard.press('Shift+ArrowRight');
    await page.keyboard.press('Enter');
    await page.getByRole('listitem').filter({ hasText: 'worker: call b3: skipped at' }).waitFor();
    await all(page);
    await before.getByRole('button', { name: 'worker: 1 message injected at C, 2 calls skipped' }).waitFor();
    assert.equal(await after.getByRole('button', { name: /2 calls skipped/ }).count(), 0);
    // Escape leaves it.
    await after.getByRole('button').first().focus();
    await page.keyboard.press('Escape');
    await chart(page).waitFor();
  }));

// > D16: What can't be played says why, and nothing is lost
test('what cannot be played says why, the message can be moved on, and while somebody works nothing is moved', () =>
  team(async ({ page, end }) => {
    await all(page);
    await item(page, LETTER).focus();
    await page.getByRole('button', { name: 'Open worker' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Move it' }).count(), 0);
    await end();
    const why = 'its models are no scripted ones';
    const asked = await plays(page, { type: 'about:blank', title: 'Not replayable', status: 422, code: 'not_replayable', detail: why }, 422);
    await item(page, LETTER).focus();
    await page.getByRole('button', { name: 'Move it' }).click();
    await item(page, LETTER).focus();
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Enter');
    await page.locator('.timeline').getByText(why).waitFor();
    assert.equal(asked.length, 1);
    await details(page).getByText('Moved by -100ms').waitFor();
    await page.getByRole('button', { name: 'Leave', exact: true }).click();
    await page.getByRole('button', { name: 'Open worker' }).waitFor();
    assert.equal(await page.locator('.ghost').count(), 0);
  }, { rests: false }));
