// What makes an agent's folder ready, before the agent's first call: it is seen while it runs.

import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import test from 'node:test';

import { lead, shown } from './ground.mjs';

const SETUP = 'folder.setup=echo one; until [ -e go ]; do sleep 0.05; done; echo two';
const SCENARIO = `${lead(`      - tools:
          - {id: s, name: spawn_agent, input: {name: worker, prompt: Go.}}
      - text: Waiting.
      - text: It is done.
`)}  - name: worker
    start: spawned
    model:
      - {takes: 200ms, text: The folder is there.}
`;

const log = (page) => page.getByRole('log');
const board = (page, name) => page.getByRole('navigation').getByRole('button').filter({ has: page.locator('.name').getByText(name, { exact: true }) });

test('what a setup says is seen while it runs, and by who comes later', () =>
  shown(SCENARIO, async ({ ground, session, page, context }) => {
    const late = await context.newPage();
    for (const one of [page, late]) {
      if (one === late) await late.goto(page.url());
      await board(one, 'worker').filter({ hasText: 'makes its folder ready' }).click();
      await log(one).getByText('The folder is made ready').waitFor();
      const said = await log(one).locator('pre.tail').innerText();
      assert.deepEqual(said.split('\n'), ['+ echo one; until [ -e go ]; do sleep 0.05; done; echo two', 'one']);
    }
    const [folders] = readdirSync(ground.path('state/midturn/worktrees'));
    writeFileSync(ground.path(`state/midturn/worktrees/${folders}/worker/go`), '');
    for (const one of [page, late]) {
      await log(one).getByText('The folder is there.', { exact: true }).waitFor();
      assert.equal(await log(one).locator('pre.tail').count(), 0);
    }
    const { events } = await ground.ask('GET', `sessions/${session}/log?limit=1000`);
    assert.ok(events.every(({ type }) => type !== 'setup_output'));
  }, { words: ['--set', SETUP] }));
