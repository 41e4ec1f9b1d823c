// Seed 004, "Memory Leaks": what a stop leaves behind.

import assert from 'node:assert/strict';
import test from 'node:test';

import { lead, shown, until } from './ground.mjs';

const LONG = 'The parser reads one word after the other and never looks back. '.repeat(6);
const streams = (times) => lead(`      - {takes: 60s, text: "${LONG}"}\n`.repeat(times));

const stop = (page) => page.getByRole('button', { name: 'Stop generating response' });
const composer = (page) => page.getByRole('textbox', { name: 'Message to lead' });
const log = (page) => page.getByRole('log');

/** Stops what streams, and begins the next run. */
async function stopAndGoOn(page, nth) {
  await stop(page).click();
  await log(page).getByText('Response interrupted').nth(nth - 1).waitFor();
  await composer(page).fill(`Go on, ${nth}.`);
  await composer(page).press('Enter');
  await log(page).getByText(`Go on, ${nth}.`).first().waitFor();
  await log(page).locator('.reply.streaming').waitFor();
}

// > 004: Clean up all event listeners on abort
test('stops leave no listeners and no detached elements behind', () =>
  shown(streams(13), async ({ page, context }) => {
    await log(page).locator('.reply.streaming').waitFor();
    const client = await context.newCDPSession(page);
    await client.send('Performance.enable');
    const counted = async () => {
      await client.send('HeapProfiler.collectGarbage');
      const { metrics } = await client.send('Performance.getMetrics');
      const elements = await page.evaluate(() => document.querySelectorAll('*').length);
      const of = (name) => metrics.find((metric) => metric.name === name).value;
      return { listeners: of('JSEventListeners'), nodes: of('Nodes'), elements };
    };
    await stopAndGoOn(page, 1);
    await stopAndGoOn(page, 2);
    const before = await counted();
    for (let nth = 3; nth <= 12; nth += 1) await stopAndGoOn(page, nth);
    const after = await counted();
    // A row that can be resumed has a button of its own, which goes when it is not the last any more.
    assert.ok(after.listeners <= before.listeners + 2, JSON.stringify([before, after]));
    // What is in the page grows by its rows: what isn't in it is gone.
    const grown = after.elements - before.elements;
    assert.ok(grown > 0 && after.nodes - before.nodes <= 8 * grown, JSON.stringify([before, after]));
  }));

// > 004: Release reader lock in SSE processor
test('every stream that ends gives its reader up', () =>
  shown(streams(2), async ({ page, ground }) => {
    // Signed in: the link is good once.
    await log(page).locator('.reply.streaming').waitFor();
    await page.addInitScript(() => {
      globalThis.readers = { got: 0, released: 0 };
      const { getReader } = ReadableStream.prototype;
      ReadableStream.prototype.getReader = function () {
        globalThis.readers.got += 1;
        const reader = getReader.call(this);
        const release = reader.releaseLock;
        reader.releaseLock = () => {
          globalThis.readers.released += 1;
          release.call(reader);
        };
        return reader;
      };
    });
    await page.reload();
    await log(page).locator('.reply.streaming').waitFor();
    const second = await ground.begin('The other one.');
    for (let nth = 0; nth < 3; nth += 1) {
      await page.getByLabel('Menu', { exact: true }).click();
      await page.getByRole('button', { name: 'Sessions' }).click();
      const row = page.getByRole('dialog').getByRole('button', { name: nth % 2 ? 'Go.' : 'The other one.' });
      await row.click();
      if (nth % 2 === 0) assert.ok(page.url().includes(second), page.url());
      await log(page).locator('.reply.streaming').waitFor();
    }
    await until('one reader is left', async () => {
      const { got, released } = await page.evaluate(() => globalThis.readers);
      return got === 4 && released === 3;
    });
  }));

// > 004: Clear thinking block activities if too large
test('of a thinking block that is too large the newest part is kept, while it thinks and when it was cut', () => {
  const thoughts = Array.from({ length: 200_000 }, (_, n) => `thought${n}`).join(' ');
  return shown(lead(`      - {takes: 60s, thinking: "${thoughts}", text: "Done."}\n      - {text: "Heard."}\n`), async ({ page }) => {
    const block = log(page).locator('.thinking');
    await block.first().waitFor();
    const size = () => block.first().evaluate((one) => one.textContent?.length ?? 0);
    await until('more was thought than is kept', async () => (await size()) > 16_000);
    assert.ok((await size()) < 17_000, 'while it thinks');
    await stop(page).click();
    await log(page).getByText('Response interrupted').waitFor();
    await until('the block says that it was stopped', async () => (await block.textContent()).includes('Stopped by you'));
    assert.ok((await size()) > 16_000 && (await size()) < 17_000, 'when it was cut');
  });
});
