// What the page is bounded by (docs/performance.md, "The page"): what is counted of it. Times are bench.mjs's.

import assert from 'node:assert/strict';
import test from 'node:test';

import { WORKERS, busy, furnish, heap, says } from './busy.mjs';
import { Ground, lead, looking, shown, until } from './ground.mjs';

const ELEMENTS_MAX = 5_000;
const ROWS_MAX = 300;
const HEAP_MAX = 32 << 20;

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
    await ground.serve(busy({ events: 11_000, seconds: 300 }));
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
