// axe-core, with every rule on, in every state of the page: light and dark, wide and narrow. What is looked at is also
// what docs/page.md shows: `MIDTURN_PICTURES=1 tests/page/run states.test.mjs` draws its pictures anew.

import assert from 'node:assert/strict';
import test from 'node:test';

import { Ground, intercepted, lead, looking, shown } from './ground.mjs';
import { NARROW, WIDE, draws, look, small, wrong } from './whole.mjs';

const LONG = 'The parser reads one word after the other and never looks back. '.repeat(6);

const log = (page) => page.getByRole('log');
const composer = (page) => page.locator('#draft');
const stop = (page) => page.getByRole('button', { name: 'Stop generating response' });
const waits = (id, words) => `          - {id: ${id}, name: bash, input: {command: "${words}; until [ -e go ]; do sleep 0.05; done"}}\n`;

const item = async (page, menu, name) => {
  await page.getByLabel(menu).click();
  await page.getByRole('button', { name, exact: true }).click();
};

test('it is whole for everybody before anybody is watched: signed out, no session, a link that is over', async () => {
  const ground = new Ground();
  try {
    await ground.serve(lead('      - {takes: 200ms, text: "Done."}\n'));
    await looking(async (page) => {
      const link = ground.link();
      await page.goto(new URL('/', link).href);
      await page.getByText('midturn open').waitFor();
      await look(page, 'signed out');
      await page.goto(link);
      await page.getByText('No session yet.').waitFor();
      await look(page, 'no session');
      await page.getByRole('button', { name: 'Begin a session' }).click();
      await look(page, 'a session is begun');
      await page.keyboard.press('Escape');
      await page.evaluate(() => localStorage.clear());
      await page.goto('about:blank');
      await page.goto(link);
      await page.getByRole('main').getByText('used already').waitFor();
      await look(page, 'a link that was used');
    });
  } finally {
    await ground.end();
  }
});

/** What one reads while it is being said. */
const TOLD =
  'I have looked at what the parser is held to. There are 41 tests; 38 of them pass, and the other three fail for the same reason: ' +
  'they call the old name through a helper in the fixtures, which nobody has renamed yet. I can rename the helper too, or leave ' +
  'the fixtures as they are and change the tests; the first is less to read, the second leaves the fixtures to whoever wrote them. ' +
  'Until somebody says otherwise I take the first way, and then I run all of them once more, the slow ones too. ';

/** A session as people have them: a lead that waits for two subagents; one of them asks, one streams. */
const TEAM = `midturn: 1
name: page
agents:
  - name: lead
    role: lead
    model:
      - text: |
          I look for every caller of \`open()\` first, then I rename it. Two of us are quicker:

          - **worker** renames the callers
          - **tester** runs what the parser is held to
        usage: {input: 4210, output: 180, cached: 2000}
        tools:
          - {id: p1, name: update_plan, input: {steps: [{text: Find the callers of open(), status: completed}, {text: Rename them, status: in_progress}, {text: Run the tests, status: pending}, {text: Say what changed, status: pending}]}}
          - {id: g1, name: grep, input: {pattern: "open\\\\("}}
          - {id: s1, name: spawn_agent, input: {name: worker, prompt: Rename open() to load() in src.}}
          - {id: s2, name: spawn_agent, input: {name: tester, prompt: Run the tests of the parser.}}
          - {id: w1, name: wait_agents, input: {names: [worker, tester]}}
      - {takes: 60s, text: "${LONG}"}
  - name: worker
    start: spawned
    model:
      - text: I begin with the parser itself.
        usage: {input: 3100, output: 96}
        tools:
          - {id: e1, name: edit, input: {path: src/parse.rs, old: "pub fn open(path: &str) {\\n    read(path)\\n}\\n", new: "pub fn load(path: &str) {\\n    read(path)\\n}\\n"}}
      - text: Done.
  - name: tester
    start: spawned
    model:
      - {takes: 300s, thinking: "Only the parser's tests matter here. The others take too long.", text: "${TOLD.repeat(10)}"}
      - {takes: 300s, text: "The fixtures it is. I begin with the nested ones, because those were the ones that failed last time. ${TOLD.repeat(10)}"}
`;

test('it is whole for everybody while a folder is made ready', () => {
  const spawn = `      - text: One of us.\n        tools:\n          - {id: s1, name: spawn_agent, input: {name: worker, prompt: Go.}}\n      - text: Waiting.\n`;
  const worker = `  - name: worker\n    start: spawned\n    model: [{text: Done.}]\n`;
  const setup = `folder.setup=seq 20; echo ${'long '.repeat(60)}; until [ -e go ]; do sleep 0.05; done`;
  return shown(lead(spawn) + worker, async ({ page }) => {
    await page.getByRole('navigation').getByText('makes its folder ready').click();
    await log(page).locator('pre.tail').getByText('long long').waitFor();
    await look(page, 'a folder is made ready');
  }, { words: ['--set', setup] });
});

test('it is whole for everybody while agents work: they ask, stream, are corrected and stopped', async () => {
  const ground = new Ground();
  try {
    ground.write('src/parse.rs', 'pub fn open(path: &str) {\n    read(path)\n}\n');
    ground.git('add', '.');
    ground.git('-c', 'user.name=Page', '-c', 'user.email=page@example.org', 'commit', '--quiet', '-m', 'a parser');
    await ground.serve(TEAM, '--mode', 'ask');
    const session = await ground.begin('Rename open() to load(), everywhere', { answers: true });
    await looking(async (page) => {
      await page.goto(ground.link(session));
      const ask = page.getByRole('region', { name: 'worker asks' });
      await ask.waitFor();
      await page.getByRole('button', { name: /^works tester/ }).waitFor();
      await log(page).getByText('Two of us are quicker').waitFor();
      await look(page, 'one asks', 'wide dark');
      await page.getByRole('tab', { name: 'Plan' }).click();
      await page.getByText('Run the tests').waitFor();
      await look(page, 'its plan');
      await page.getByRole('tab', { name: 'Conversation' }).click();

      await page.getByRole('button', { name: /^works tester/ }).click();
      await log(page).getByText('38 of them pass').waitFor();
      await composer(page).fill('Only the parser’s own tests, please.');
      await look(page, 'it streams', 'narrow light');
      await page.getByLabel('Mode').selectOption({ label: 'Later' });
      await composer(page).press('Enter');
      await page.getByRole('region', { name: 'Queued messages' }).getByText('Only the parser').waitFor();
      await look(page, 'a message waits');
      await page.getByRole('button', { name: 'Edit', exact: true }).click();
      await look(page, 'it is edited');
      await page.keyboard.press('Escape');
      await page.setViewportSize(NARROW);
      await page.getByRole('button', { name: /^☰/ }).click();
      await page.getByRole('navigation', { name: 'Agents' }).getByText('3 agents').waitFor();
      await draws(page, 'agents');
      assert.deepEqual([await wrong(page), await small(page)], [[], []], 'the drawer');
      await page.getByRole('button', { name: /^works tester/ }).click();
      await page.setViewportSize(WIDE);

      await page.getByLabel('Mode').selectOption({ label: 'Now' });
      await composer(page).fill('Use the fixtures.');
      await composer(page).press('Enter');
      await log(page).getByText('Use the fixtures.').waitFor();
      await log(page).getByText('I begin with the nested ones').waitFor();
      await look(page, 'corrected', 'wide light');
      await page.getByRole('tab', { name: 'Diff' }).click();
      await page.getByText('Nothing has changed.').waitFor();
      await look(page, 'nothing changed');
      await page.getByRole('tab', { name: 'Conversation' }).click();
      await stop(page).click();
      await log(page).getByText('Stopped by you').or(log(page).getByText('Response interrupted')).first().waitFor();
      await look(page, 'stopped', 'narrow dark');
      // A keyboard that comes up hides nothing of what was said last.
      await page.setViewportSize({ width: NARROW.width, height: 400 });
      await page.waitForFunction(() => {
        const all = document.getElementById('log');
        return all && all.scrollHeight > all.clientHeight && all.scrollHeight - all.scrollTop - all.clientHeight < 2;
      });
      await page.setViewportSize(WIDE);

      await page.getByRole('button', { name: /^asks you worker/ }).click();
      await ask.getByRole('button', { name: 'Once' }).click();
      await log(page).getByText('Done.').waitFor();
      await log(page).locator('summary').filter({ hasText: 'src/parse.rs' }).click();
      await look(page, 'a call is open');
      await page.getByRole('tab', { name: 'Diff' }).click();
      await page.getByText('pub fn load').waitFor();
      await look(page, 'diff', 'wide dark');
      for (const [menu, name] of [
        ['Menu', 'Sessions'],
        ['Menu', 'Begin a session'],
        ['Menu', 'Limits of the session'],
        ['Menu', 'Figures'],
        ['Menu', 'Keys'],
        ['What can be done with worker', 'Limits'],
        ['What can be done with worker', 'Spawn below it'],
        ['What can be done with worker', 'Close it'],
      ]) {
        await item(page, menu, name);
        await page.getByRole('dialog').locator('h2').waitFor();
        await page.getByText('Loading …').waitFor({ state: 'detached' });
        await look(page, name);
        await page.keyboard.press('Escape');
      }
      await page.getByLabel('What can be done with worker').click();
      await look(page, 'a menu is open');
    });
  } finally {
    await ground.end();
  }
});

const ENDS = lead(
  '      - {text: "A first word.", usage: {input: 10, output: 3}}\n' +
    '      - {text: ""}\n' +
    '      - {error: invalid_request}\n' +
    `      - {takes: 60s, text: "${LONG}"}\n` +
    '      - {takes: 200ms, text: "Heard."}\n',
);

test('it is whole for everybody when a run ends: finished, without a word, failed, superseded; and when the daemon is gone', async () => {
  const ground = new Ground();
  const says = async (page, text) => {
    await composer(page).fill(text);
    await composer(page).press('Enter');
  };
  try {
    await ground.serve(ENDS);
    const session = await ground.begin();
    await looking(async (page) => {
      await page.goto(ground.link(session));
      await log(page).getByText('finished after 1 turn').waitFor();
      await look(page, 'it has finished');
      await says(page, 'And now?');
      await page.getByRole('button', { name: 'Try again' }).waitFor();
      await look(page, 'an empty answer, or one that failed');
      await says(page, 'Once more.');
      await log(page).getByText('invalid').first().waitFor();
      await page.getByRole('button', { name: 'Try again' }).waitFor();
      await look(page, 'it has failed');
      await says(page, 'Again.');
      await log(page).getByText('The parser reads').waitFor();
      // The request hangs: an abort is under way.
      let go = () => {};
      const later = new Promise((done) => (go = () => done(undefined)));
      await page.route('**/stop', async (route) => {
        await later;
        await route.continue();
      });
      await intercepted(page);
      await stop(page).click();
      await page.locator('button.stop:disabled').waitFor();
      await look(page, 'an abort is under way');
      go();
      await page.getByRole('button', { name: 'Resume' }).first().waitFor();
      await ground.kill();
      await page.getByText('Trying again').first().waitFor();
      await composer(page).fill('half a thought');
      await look(page, 'offline', 'narrow light');
      await ground.serve(ENDS);
      await page.goto(ground.link(session));
      await page.getByText('This session is only stored').waitFor();
      await log(page).getByText('Again.').waitFor();
      await look(page, 'a session that is only stored');
    });
  } finally {
    await ground.end();
  }
});
