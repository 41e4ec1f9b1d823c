// Seed 004: what is cut off is told from what is whole, in thinking, calls, plans and answers.

import assert from 'node:assert/strict';
import test from 'node:test';

import { intercepted, lead, shown } from './ground.mjs';

const LONG = 'The parser reads one word after the other and never looks back. '.repeat(6);
const AFTERWARDS = ['Heard.', 'Heard again.'].map((text) => `      - {takes: 200ms, text: "${text}"}\n`).join('');

const stop = (page) => page.getByRole('button', { name: 'Stop generating response' });
const composer = (page) => page.getByRole('textbox', { name: 'Message to lead' });
const log = (page) => page.getByRole('log');

/** A bash call that ends when the file of its name is there. */
const waits = (id) => `          - {id: ${id}, name: bash, input: {command: "echo ${id} begun; until [ -e ${id} ]; do sleep 0.05; done"}}\n`;

// > 004: Thinking block status moves to interrupted/cancelled (not completed) on abort
// > 004: Thinking block shows Interrupted status and assistant message shows badge
test('thinking that is cut says by whom, and never that it is complete', async () => {
  const thinks = lead(`      - {takes: 60s, thinking: "${LONG}", text: "Done."}\n${AFTERWARDS}`);
  await shown(thinks, async ({ page }) => {
    const block = log(page).locator('.thinking');
    await block.filter({ hasText: 'Thinking' }).waitFor();
    assert.equal(await block.getAttribute('data-status'), 'active');
    await stop(page).click();
    await block.filter({ hasText: 'Stopped by you' }).waitFor();
    assert.equal(await block.getAttribute('data-status'), 'interrupted');
    await log(page).getByText('Response interrupted').waitFor();
  });
  await shown(thinks, async ({ page }) => {
    const block = log(page).locator('.thinking').first();
    await block.filter({ hasText: 'Thinking' }).waitFor();
    await page.getByLabel('Mode').selectOption({ label: 'Stop and send' });
    await composer(page).fill('Something else.');
    await composer(page).press('Enter');
    await block.filter({ hasText: 'Cancelled' }).waitFor();
    assert.equal(await block.getAttribute('data-status'), 'cancelled');
  });
});

// > 004: Mark tool as cancelled in thinking block
// > 004: If a partial result exists, render it with a "Partial (stopped)" badge; never mark as "completed"
// > 004: ToolExecutionService respects abortSignal (single and multiple tools)
// > 004: message-persister accepts messageType + metadata and stores tool partials in tool_result
test('a call that is stopped is partial, and those behind it were skipped', () =>
  shown(lead(`      - text: Three.\n        tools:\n${waits('b1')}${waits('b2')}${waits('b3')}${AFTERWARDS}`), async (all) => {
    const { page, ground, session } = all;
    await log(page).locator('pre.tail', { hasText: 'b1 begun' }).waitFor();
    await stop(page).click();
    await log(page).getByText('Partial (stopped)').waitFor();
    const ended = await ground.events(session, 'tool_finished');
    const statuses = Object.fromEntries(ended.map(({ tool, status }) => [tool, status]));
    assert.deepEqual(statuses, { b1: 'stopped', b2: 'skipped', b3: 'skipped' });
    const { output } = ended.find(({ tool }) => tool === 'b1');
    assert.ok(output.includes('b1 begun'), output);
    await page.reload();
    await log(page).getByText('Partial (stopped)').waitFor();
    assert.equal(await log(page).getByText('skipped').count(), 2);
    assert.equal(await log(page).locator('.call').filter({ hasText: /completed|\bok\b/ }).count(), 0);
  }));

// > 004: Mark remaining steps as "skipped"
// > 004: Show which steps completed before interruption
test('of a plan that is cut off the steps that were done stay done, and the others are skipped', () => {
  const steps = '[{text: look, status: completed}, {text: change, status: in_progress}, {text: test, status: pending}]';
  const plan = `          - {id: p1, name: update_plan, input: {steps: ${steps}}}\n`;
  return shown(lead(`      - text: A plan.\n        tools:\n${plan}${waits('b1')}${AFTERWARDS}`), async ({ page }) => {
    await log(page).locator('pre.tail', { hasText: 'b1 begun' }).waitFor();
    await stop(page).click();
    await log(page).getByText('Partial (stopped)').waitFor();
    await page.getByRole('tab', { name: 'Plan' }).click();
    const rows = page.getByRole('tabpanel').getByRole('listitem');
    await rows.filter({ hasText: 'test' }).filter({ hasText: 'skipped' }).waitFor();
    const told = (await rows.allInnerTexts()).map((text) => text.replace(/\s+/g, ' ').trim());
    assert.equal(told.length, 3, told.join());
    for (const [at, state] of ['completed', 'skipped', 'skipped'].entries()) assert.ok(told[at].includes(state), told[at]);
  });
});

// > 004: Show the full response if it arrives
test('a stop that comes too late shows the whole answer, without a badge', () =>
  shown(lead(`      - {takes: 12s, text: "${LONG}"}\n${AFTERWARDS}`), async ({ page, ground, session }) => {
    await log(page).getByText('The parser').waitFor();
    // The click's request is under way until the answer is whole.
    let let_go = () => {};
    const whole = new Promise((done) => {
      let_go = () => done(undefined);
    });
    await page.route('**/stop', async (route) => {
      await whole;
      await route.continue();
    });
    await intercepted(page);
    await stop(page).click();
    await page.locator('button.stop:disabled').waitFor();
    await log(page).getByText('finished after 1 turn').waitFor();
    let_go();
    await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
    assert.equal(await log(page).getByText('Response interrupted').count(), 0);
    await log(page).getByText(LONG.trim(), { exact: true }).waitFor();
    assert.deepEqual(await ground.events(session, 'model_interrupted'), []);
  }));

// > 004: Ensure previous abort completes before new request
test('a message that is sent while an abort is under way begins the next run, and nothing of the first is in it', () =>
  shown(lead(`      - {takes: 60s, text: "${LONG}"}\n${AFTERWARDS}`), async ({ page, ground, session }) => {
    await log(page).getByText('The parser').waitFor();
    await composer(page).fill('The printer.');
    await page.keyboard.press('Escape');
    await composer(page).press('Enter');
    await log(page).getByText('Heard.', { exact: true }).waitFor();
    const order = (await Promise.all(['run_finished', 'run_started'].map((type) => ground.events(session, type)))).flat();
    order.sort((one, other) => one.seq - other.seq);
    assert.deepEqual(order.slice(0, 3).map(({ type, run }) => `${type} ${run}`), ['run_started 1', 'run_finished 1', 'run_started 2']);
    assert.equal(order[1].outcome, 'stopped');
  }));

// > 004: Stop button usage rate - How often users interrupt
// > 004: Time to stop - Latency between click and stream halt
// > 004: Follow-up message rate - How often users send after stopping
// > 004: Partial response length - How much content was generated before stop
test('the four metrics of stops are on the page', () =>
  shown(lead(`      - {takes: 60s, text: "${LONG}"}\n${AFTERWARDS}`), async ({ page }) => {
    await log(page).getByText('The parser reads one').waitFor();
    await stop(page).click();
    await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
    await composer(page).fill('Go on.');
    await composer(page).press('Enter');
    await log(page).getByText('Heard.', { exact: true }).waitFor();
    await page.getByLabel('Menu', { exact: true }).click();
    await page.getByRole('button', { name: 'Figures' }).click();
    const told = async (name) => page.getByRole('dialog').locator('dt', { hasText: name }).locator('+ dd').innerText();
    await page.getByRole('dialog').getByText('Runs that were stopped').waitFor();
    assert.match(await told('Runs that were stopped'), /^(50|100) %$/);
    assert.match(await told('From your last click on stop to the end'), /^\d+\.\d{3} s$/);
    assert.match(await told('Stops that a message followed'), /^100 %$/);
    assert.match(await told('Length of what was cut'), /^\d+ tokens/);
  }));
