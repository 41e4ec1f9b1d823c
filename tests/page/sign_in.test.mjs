// Who is let in, and what a page keeps of that (docs/protocol.md, "The page").

import assert from 'node:assert/strict';
import test from 'node:test';

import { Ground, lead, looking, shown } from './ground.mjs';

const DONE = lead(['One.', 'Two.'].map((text) => `      - {takes: 200ms, text: "${text}"}\n`).join(''));

const isIn = (page) => page.getByRole('textbox', { name: 'Message to lead' }).waitFor();

test('a link signs one page in, and its code is gone from the address', () =>
  shown(DONE, async ({ page, context }) => {
    await isIn(page);
    assert.ok(!page.url().includes('code='), page.url());
    assert.deepEqual(await context.cookies(), [], 'a cookie would go to every port');
    // The token is this browser's: a second tab and a reload need no code.
    const second = await context.newPage();
    await second.goto(page.url());
    await isIn(second);
    await page.reload();
    await isIn(page);
  }));

test('a link that was used lets nobody else in, and says how to get another', () =>
  shown(DONE, async ({ ground, session, page }) => {
    await isIn(page);
    const link = ground.link(session);
    await looking(async (first) => {
      await first.goto(link);
      await isIn(first);
      await looking(async (late) => {
        await late.goto(link);
        await late.getByText('midturn open').first().waitFor();
        assert.equal(await late.getByRole('textbox').count(), 0);
      });
    });
  }));

test('a page outlives its daemon: it says so, keeps the draft, and goes on at the next one', async () => {
  const ground = new Ground();
  try {
    await ground.serve(DONE);
    const session = await ground.begin();
    await looking(async (page) => {
      await page.goto(ground.link(session));
      await isIn(page);
      const composer = page.getByRole('textbox', { name: 'Message to lead' });
      await composer.fill('half a thought');
      await ground.kill();
      await page.getByText(/lost|gone|no longer|not reach|offline/i).first().waitFor();
      assert.equal(await composer.inputValue(), 'half a thought');
      await ground.serve(DONE);
      // The same port, so the same drafts.
      await page.goto(ground.link(session));
      await page.getByText('This session is only stored').waitFor();
      await page.getByRole('button', { name: 'Resume it' }).click();
      await isIn(page);
      assert.equal(await composer.inputValue(), 'half a thought');
    });
  } finally {
    await ground.end();
  }
});
