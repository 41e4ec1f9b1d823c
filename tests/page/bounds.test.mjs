// What the page is bounded by (docs/performance.md, "The page"): what is counted of it. Times are bench.mjs's.

import assert from 'node:assert/strict';
import test from 'node:test';

import { count, markdown } from '../../crates/server/page/markdown.js';
import { part } from '../../crates/server/page/shown.js';
import { Watched } from '../../crates/server/page/watched.js';
import { IDLE, LIST, MIB, WORKERS, busy, furnish, heap, replies, says, saysAtOnce } from './busy.mjs';
import { Ground, lead, looking, shown, until } from './ground.mjs';

const ELEMENTS_MAX = 5_000;
const ROWS_MAX = 300;
const HEAP_MAX = 32 * MIB;
const CHARACTERS_MAX = 512 << 10;

/** The most that a page has of elements and of rows in so many frames, and how often it changed in them. */
function watch(frames) {
  const most = { elements: 0, rows: 0, changes: 0, frames };
  const observer = new MutationObserver(() => (most.changes += 1));
  observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
  return new Promise((done) => {
    const frame = () => {
      most.elements = Math.max(most.elements, document.querySelectorAll('*').length);
      most.rows = Math.max(most.rows, document.querySelectorAll('#log > :is(article, details, div, p.line)').length);
      if (frames-- > 0) return requestAnimationFrame(frame);
      observer.disconnect();
      done(most);
    };
    requestAnimationFrame(frame);
  });
}

test('10,000 events and 21 agents who speak at once: the page keeps its bounds, draws once a frame, and one types', async (t) => {
  const ground = new Ground();
  try {
    furnish(ground);
    await ground.serve(busy({ events: 10_000, seconds: 200 }));
    const session = await ground.begin();
    await until('10,000 events, and all speak', () => says(ground, session, 10_000));
    await looking(async (page, context) => {
      await page.goto(ground.link(session));
      const log = page.getByRole('log');
      await log.locator('.reply.streaming').waitFor();
      assert.equal(await page.locator('#board li').count(), WORKERS + 1);
      const most = await page.evaluate(watch, 120);
      t.diagnostic(JSON.stringify(most));
      assert.ok(most.elements <= ELEMENTS_MAX, `${most.elements} elements`);
      // What is being said is a row more, and what it thinks.
      assert.ok(most.rows >= ROWS_MAX && most.rows <= ROWS_MAX + 2, `${most.rows} rows`);
      assert.ok(most.changes > 10 && most.changes <= most.frames + 1, `${most.changes} changes in ${most.frames} frames`);
      const composer = page.getByRole('textbox', { name: 'Message to lead' });
      await composer.pressSequentially('one types');
      assert.equal(await composer.inputValue(), 'one types');
      // All that can be looked at has been.
      for (let n = 1; n <= WORKERS; n += 1) {
        await page.locator('#board').getByText(`worker-${n}`, { exact: true }).click();
        await log.locator('.reply.streaming').waitFor();
      }
      const used = await heap(context, page);
      t.diagnostic(`heap ${(used / (1 << 20)).toFixed(1)} MiB`);
      assert.ok(used <= HEAP_MAX, `${used} bytes after a collection`);
    });
  } finally {
    await ground.end();
  }
});

test('a page that catches up folds as long as its last frame drew, for at least 8 ms and at most 100', (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const watched = new Watched({}, { session: 's', live: true, last_seq: 0 }, () => {}, () => {});
  // Reading each takes a millisecond, and there is nothing in it.
  const data = { length: 1, toString: () => ((now += 1), '{') };
  for (let n = 0; n < 1_000; n += 1) void watched.inbox.put({ event: 'run_started', data });
  const folds = (drawnIn) => {
    const began = now;
    assert.ok(watched.takeIn(drawnIn), 'something is left');
    return now - began;
  };
  assert.deepEqual([0, 5, 40, 100, 3_000].map(folds), [9, 9, 41, 101, 101]);
});

/** What is too much: the scenario that says it, or a reply that is in the stream. */
const TOO_MUCH = [
  ['300 replies of 4,000 characters', replies(LIST.repeat(4_000 / LIST.length), 300)],
  ['60 replies that are nothing but marks', replies('*a* '.repeat(7_500), 60)],
  ['a reply of 10 MiB of markdown', IDLE, LIST.repeat((10 * MIB) / LIST.length)],
  ['a reply of one line of 15 MiB', IDLE, 'x'.repeat(15 * MIB)],
  ['a reply of 17 MiB, which is not read', IDLE, 'x'.repeat(17 * MIB)],
];

for (const [what, scenario, text] of TOO_MUCH) {
  test(`${what}: the page keeps its bounds, and one types`, async (t) => {
    const ground = new Ground();
    try {
      furnish(ground);
      await ground.serve(scenario);
      const session = await ground.begin();
      await looking(async (page, context) => {
        if (text) await saysAtOnce(page, text);
        await page.goto(ground.link(session));
        await page.getByText('finished after').waitFor();
        assert.equal(await page.getByText('too large for this page').count(), text?.length > 16 * MIB ? 1 : 0);
        const composer = page.getByRole('textbox', { name: 'Message to lead' });
        await composer.pressSequentially('one types');
        assert.equal(await composer.inputValue(), 'one types');
        const { elements } = await page.evaluate(watch, 1);
        const characters = await page.evaluate(() => document.body.textContent.length);
        const used = await heap(context, page);
        t.diagnostic(JSON.stringify({ elements, characters, used }));
        assert.ok(elements <= ELEMENTS_MAX && characters <= CHARACTERS_MAX && used <= HEAP_MAX);
      });
    } finally {
      await ground.end();
    }
  });
}

/** Counts the frames that the page asks for in so many seconds, in which nothing comes, and what changes on it. */
async function quietSeconds(page, seconds) {
  await page.evaluate(() => {
    globalThis.counted = { asked: 0, changes: 0 };
    const ask = globalThis.requestAnimationFrame;
    globalThis.requestAnimationFrame = (frame) => {
      globalThis.counted.asked += 1;
      return ask(frame);
    };
    const observer = new MutationObserver((records) => (globalThis.counted.changes += records.length));
    observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
  });
  await page.clock.runFor(seconds * 1000);
  return page.evaluate(() => globalThis.counted);
}

/** A page whose clock is ours. */
const clocked = (scenario, look) =>
  shown(scenario, look, {}, (show, settings) =>
    looking(async (page, context) => {
      await page.clock.install();
      await show(page, context);
    }, settings),
  );

test('a page on which nobody works draws nothing, and what is typed on it is drawn', () =>
  clocked(lead('      - {text: "Done."}\n'), async ({ page }) => {
    const composer = page.getByRole('textbox', { name: 'Message to lead' });
    await page.getByText('finished after 1 turn').waitFor();
    await page.clock.runFor(2_000);
    assert.deepEqual(await quietSeconds(page, 20), { asked: 0, changes: 0 });
    await composer.press('a');
    await page.clock.runFor(100);
    assert.ok((await page.evaluate(() => globalThis.counted.asked)) > 0);
  }));

test('a page on which a command says nothing draws once a second, and for what it asks the server', () => {
  const waits = '      - text: One.\n        tools: [{id: b1, name: bash, input: {command: "until [ -e go ]; do sleep 0.05; done"}}]\n';
  return clocked(lead(waits), async ({ page }) => {
    await page.getByText('running 0:').waitFor();
    const { asked } = await quietSeconds(page, 20);
    // It asks every 3 s.
    assert.ok(asked >= 19 && asked <= 20 + 8, `${asked} frames in 20 s`);
  });
});

test('whatever the rows hold, one can look at all of them, step by step, back and on', () => {
  const sizes = [(n) => 1 + (n % 7), () => 5_000, (n) => (n % 40 === 0 ? 9_000 : 3), (n) => n, () => 0];
  for (const size of sizes) {
    for (const length of [0, 1, 299, 300, 301, 2_000]) {
      const rows = Array.from({ length }, (_, n) => ({ size: () => size(n) }));
      let [end, seen] = [length, length];
      while (part(rows, end).begin > 0) {
        const { begin, older } = part(rows, end);
        assert.ok(begin < end && end - begin <= ROWS_MAX && older() < end && older() >= begin, `${size} ${length}: ${end}`);
        assert.ok(begin <= seen, 'nothing is left out');
        [seen, end] = [begin, older()];
      }
      while (end < length) {
        const next = part(rows, end).newer();
        assert.ok(next > end && part(rows, next).begin <= end, `${size} ${length}: ${end}`);
        end = next;
      }
    }
  }
});

test('what would be too many elements, or too long, is plain, and of 10 MiB the beginning', () => {
  for (const text of ['*a* '.repeat(7_500), `|a|b|\n|-|-|\n${'|c|d|\n'.repeat(5_000)}`, '>'.repeat(3_000), '- a\n'.repeat(2_000)]) {
    assert.deepEqual(markdown(text).map(({ tag }) => tag), ['plain'], text.slice(0, 20));
  }
  assert.ok(count(markdown('- *a*\n'.repeat(400))) > 800);
  for (const text of ['x'.repeat(10 << 20), 'A **word**.\n'.repeat(1 << 20)]) {
    const [{ tag, inner }] = markdown(text);
    assert.equal(tag, 'plain');
    assert.ok(inner[0].length < 66_000 && inner[0].endsWith(' MB more'), inner[0].slice(-40));
  }
});
