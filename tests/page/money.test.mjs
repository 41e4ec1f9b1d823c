// Money on the page: exact where a person has said what a model costs, about so much where the table of prices does.

import assert from 'node:assert/strict';
import test from 'node:test';

import { lead, shown } from './ground.mjs';

const USED = 'usage: {input: 100000, output: 2000}';
const SCENARIO = `${lead(`      - text: Two of us.
        ${USED}
        tools:
          - {id: s, name: spawn_agent, input: {name: worker, prompt: Go.}}
          - {id: w, name: wait_agents, input: {names: [worker]}}
      - {text: All is done., ${USED}}
`)}  - name: worker
    start: spawned
    model:
      - {text: Done., ${USED}}
`;
const PRICES = ['--set', 'models.scripted.input=3', '--set', 'models.scripted.output=15'];

const board = (page, name) => page.getByRole('navigation').getByRole('button').filter({ has: page.locator('.name').getByText(name, { exact: true }) });
const all = (page, sum) => page.getByRole('banner').locator('.counts').getByText(new RegExp(`(^| )${sum}( |$)`)).waitFor();
const one = (page, sum) => page.locator('.title p.quiet').getByText(new RegExp(`(^| )${sum}$`)).waitFor();

test('money that is counted with the table of prices is marked with ~, and so is a sum with a part of it', () =>
  shown(SCENARIO, async ({ page }) => {
    await page.getByRole('log').getByText('All is done.', { exact: true }).waitFor();
    await page.reload();
    await all(page, '\\$0\\.99');
    await one(page, '\\$0\\.66');
    // No server of a test is at a host whose prices the table has: what it says of a worker there is put in.
    let priced = 0;
    await page.route(/\/v1\/sessions\/[^/]+\/agents$/, async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      const worker = json.agents.find(({ name }) => name === 'worker');
      assert.equal(worker.cost, '0.33');
      worker.priced_at = '2026-10-20';
      priced += 1;
      await route.fulfill({ response, json });
    });
    await page.reload();
    await all(page, '~\\$0\\.99');
    await one(page, '\\$0\\.66');
    await board(page, 'worker').click();
    await one(page, '~\\$0\\.33');
    assert.ok(priced > 0);
  }, { words: PRICES }));
