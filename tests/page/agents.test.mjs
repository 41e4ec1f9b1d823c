// What one does with agents and sessions from the page: begin, spawn, supersede, close, resume, raise, read, merge.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import test from 'node:test';

import { Ground, lead, looking, once, shown, until } from './ground.mjs';

const LONG = 'The parser reads one word after the other and never looks back. '.repeat(20);
const heard = (...texts) => texts.map((text) => `      - {takes: 200ms, text: "${text}"}\n`).join('');
const streams = `      - {takes: 60s, text: "${LONG}"}\n`;
const bash = (id, command) => `          - {id: ${id}, name: bash, input: {command: "${command}"}}\n`;
const waits = (id) => bash(id, `echo ${id} begun; until [ -e ${id} ]; do sleep 0.05; done`);

/** A subagent that begins once it is spawned. */
const subagent = (name, replies) => `  - name: ${name}\n    start: spawned\n    model:\n${replies}`;

const log = (page) => page.getByRole('log');
const composer = (page, agent = 'lead') => page.getByRole('textbox', { name: `Message to ${agent}` });
/** The row of the board with this name: what others do may name it, too. */
const board = (page, name) => page.getByRole('navigation').getByRole('button').filter({ has: page.locator('.name').getByText(name, { exact: true }) });
const dialog = (page) => page.getByRole('dialog');
const head = (page) => page.getByRole('banner');
const says = (page, text) => log(page).getByText(text, { exact: true }).waitFor();

async function send(page, text, mode, agent = 'lead') {
  if (mode) await page.getByLabel('Mode').selectOption({ label: mode });
  await composer(page, agent).fill(text);
  await composer(page, agent).press('Enter');
}

/** Chooses what stands in the menu of an agent. */
async function act(page, agent, what) {
  const menu = page.locator('.title .menu');
  await menu.getByLabel(`What can be done with ${agent}`).click();
  await menu.getByRole('button', { name: what, exact: true }).click();
}

test('a session is begun, an agent spawned, superseded and closed, and to a closed one nobody can write', () =>
  shown(lead(heard('Ready.')) + subagent('worker', streams + heard('The printer, then.')), async ({ page, ground, session }) => {
    await says(page, 'Ready.');
    await page.getByLabel('Menu', { exact: true }).click();
    await page.getByRole('button', { name: 'Begin a session' }).click();
    await dialog(page).getByLabel('Task').fill('The second task.');
    await dialog(page).getByRole('button', { name: 'Begin', exact: true }).click();
    await page.getByRole('heading', { name: 'The second task.' }).waitFor();
    await says(page, 'Ready.');
    const { sessions } = await ground.ask('GET', 'sessions');
    assert.equal(sessions.length, 2);
    const second = sessions.find((one) => one.session !== session).session;

    await page.getByRole('button', { name: '+ Agent' }).click();
    await dialog(page).getByLabel('Name').fill('worker');
    await dialog(page).getByLabel('What it is to do').fill('The parser.');
    await dialog(page).getByRole('button', { name: 'Spawn' }).click();
    await composer(page, 'worker').waitFor();
    await log(page).getByText('The parser reads one').waitFor();
    await send(page, 'The printer.', 'Stop and send', 'worker');
    await says(page, 'The printer, then.');

    await act(page, 'worker', 'Close it');
    await dialog(page).getByText('It and all agents below it are stopped').waitFor();
    await dialog(page).getByRole('button', { name: 'Close worker' }).click();
    await page.getByText('worker is closed: nobody can write to it any more.').waitFor();
    await page.getByRole('status').filter({ hasText: 'Closed worker' }).waitFor({ state: 'attached' });
    assert.equal(await composer(page, 'worker').count(), 0);
    assert.equal((await ground.ask('GET', `sessions/${second}/agents/worker`)).state, 'closed');
    await board(page, 'lead').click();
    await composer(page).waitFor();
  }));

test('a name that is taken is refused with the reason, and what was typed is still there', () =>
  shown(lead(heard('Ready.')), async ({ page }) => {
    await says(page, 'Ready.');
    await page.getByRole('button', { name: '+ Agent' }).click();
    await dialog(page).getByLabel('Name').fill('lead');
    await dialog(page).getByRole('button', { name: 'Spawn' }).click();
    await dialog(page).getByRole('alert').filter({ hasText: /name|taken|used/ }).waitFor();
    assert.equal(await dialog(page).getByLabel('Name').inputValue(), 'lead');
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'detached' });
  }));

test('an agent that failed, and one whose reply was empty, is tried again', () => {
  const scenario = lead(`      - {takes: 200ms, error: invalid_request}\n      - {text: ""}\n${heard('There you are.')}`);
  return shown(scenario, async ({ page, ground, session }) => {
    const again = page.getByRole('button', { name: 'Try again' });
    await log(page).locator('.line.bad').getByText(/^failed after 1 turn: /).waitFor();
    await again.click();
    await log(page).locator('.line.bad').getByText(/empty/).waitFor();
    // Only of the last run there is something to try.
    assert.equal(await again.count(), 1);
    await again.click();
    // An empty reply is one: another is asked for by a message, and the page says which.
    await log(page).locator('.letter.yours').getByText('Try again.').waitFor();
    await says(page, 'There you are.');
    assert.equal(await again.count(), 0);
    const outcomes = (await ground.events(session, 'run_finished')).map(({ outcome }) => outcome);
    assert.deepEqual(outcomes, ['failed', 'failed', 'finished']);
  });
});

test('a stopped agent goes on where it was, and a resume that starts nothing says so', () => {
  const scenario = lead(`      - text: A command.\n        tools:\n${waits('b1')}${heard('Done.')}`);
  return shown(scenario, async ({ page, ground, session }) => {
    await log(page).locator('pre.tail', { hasText: 'b1 begun' }).waitFor();
    await page.getByRole('button', { name: 'Stop generating response' }).click();
    const note = 'no run starts; anybody may wake it again';
    await once(page, '**/resume', (route) => route.fulfill({ json: { started: false, wakeable: true, note } }));
    await log(page).getByRole('button', { name: 'Resume' }).click();
    await page.locator('.composer').getByText(note).waitFor();
    await act(page, 'lead', 'Resume');
    await says(page, 'Done.');
    const outcomes = (await ground.events(session, 'run_finished')).map(({ outcome }) => outcome);
    assert.deepEqual(outcomes, ['stopped', 'finished']);
  });
});

test('an agent that met its limit says so, refuses mail with what to do, and goes on once the limit is raised', () => {
  const scenario = lead(`      - text: One.\n        tools:\n${bash('b1', 'echo one')}${heard('Two.')}`);
  return shown(scenario, async ({ page }) => {
    await log(page).getByText(/^limit after 1 turn/).waitFor();
    await send(page, 'More.');
    await page.locator('.refused').getByText(/: raise it$/).waitFor();
    assert.equal(await composer(page).inputValue(), 'More.');
    await page.getByRole('button', { name: 'Raise the limit' }).click();
    await dialog(page).getByLabel('Turns').fill('9');
    await dialog(page).getByRole('button', { name: 'Set' }).click();
    await log(page).getByText('you set max_turns = 9').waitFor();
    await says(page, 'Two.');
  }, { words: ['--set', 'max_turns=1'] });
});

test('a stored session is read and resumed', async () => {
  const ground = new Ground();
  try {
    const scenario = lead(heard('Once upon a time.', 'And then.'));
    await ground.serve(scenario);
    const session = await ground.begin('Tell a story.');
    await until('it was told', async () => (await ground.events(session, 'run_finished')).length === 1);
    ground.daemon.kill('SIGTERM');
    await new Promise((gone) => ground.daemon.once('exit', gone));
    await ground.serve(scenario);
    await looking(async (page) => {
      await page.goto(ground.link());
      await page.getByRole('button', { name: /Tell a story\..*stored/s }).click();
      await says(page, 'Once upon a time.');
      await page.getByText('This session is only stored.').waitFor();
      assert.equal(await composer(page).count(), 0);
      await page.getByRole('button', { name: 'Resume it' }).click();
      await send(page, 'Go on.');
      await log(page).getByText('✓ Message injected at the start of a run').waitFor();
      assert.equal((await ground.ask('GET', `sessions/${session}`)).live, true);
    });
  } finally {
    await ground.end();
  }
});

test("a subagent's branch is looked at and merged, and a conflict is named", () => {
  const write = (id, text) => bash(id, `echo ${text} > story.txt`);
  const worker = (name, text) => subagent(name, `      - tools:\n${write(`${name}1`, text)}${heard('Written.')}`);
  return shown(lead(heard('Ready.')) + worker('first', 'of-the-first') + worker('second', 'of-the-second'), async (all) => {
    const { page, ground, session, context } = all;
    await says(page, 'Ready.');
    const other = await context.newPage();
    await other.goto(ground.link(session));
    await says(other, 'Ready.');
    // The one behind draws once a second, and a click waits for what is drawn.
    await page.bringToFront();
    for (const name of ['first', 'second']) await ground.ask('POST', `sessions/${session}/agents`, { name, prompt: 'Write.' });
    for (const name of ['first', 'second']) {
      await board(page, name).click();
      await says(page, 'Written.');
    }
    const merge = async (name) => {
      await board(page, name).click();
      await page.getByRole('tab', { name: 'Diff' }).click();
      await page.getByLabel('Diff').getByText(`+of-the-${name}`).waitFor();
      await page.getByRole('button', { name: 'Merge into the project' }).click();
    };
    await merge('first');
    await page.getByLabel('Diff').getByText('Merged', { exact: true }).waitFor();
    assert.equal(readFileSync(`${ground.path('project')}/story.txt`, 'utf8'), 'of-the-first\n');
    await merge('second');
    await page.getByLabel('Diff').getByText('Not merged: conflicts in story.txt').waitFor();
    assert.equal(readFileSync(`${ground.path('project')}/story.txt`, 'utf8'), 'of-the-first\n');
    const left = execFileSync('git', ['status', '--porcelain', '-uno'], { cwd: ground.path('project'), encoding: 'utf8' });
    assert.equal(left, '', 'a conflict leaves nothing in the project');
    await page.getByRole('button', { name: /^Inbox/ }).click();
    const line = 'second could not be merged: conflicts in story.txt';
    await page.getByRole('dialog').getByRole('button', { name: line }).waitFor();
    await page.keyboard.press('Escape');

    // Whoever else looks sees it, and so does this page when it is loaded anew.
    const listed = async (page) => {
      await page.bringToFront();
      await page.getByRole('button', { name: /^Inbox/ }).click();
      const button = page.getByRole('dialog').getByRole('button', { name: line });
      await until('the inbox is there', async () => (await page.getByRole('dialog').count()) === 1);
      return button;
    };
    await (await listed(other)).waitFor();
    await page.reload();
    await (await listed(page)).click();
    await page.getByRole('tab', { name: 'Diff', selected: true }).waitFor();
    const waiting = () => ground.says('ps', '--waiting').split('\n').includes(line);
    assert.ok(waiting(), ground.says('ps', '--waiting'));

    // Until it goes, whoever merges it.
    ground.git('reset', '--quiet', '--hard', 'HEAD~');
    assert.match(ground.says('merge', 'second', '--session', session), /^merged the branch of second/);
    assert.equal(waiting(), false);
    await other.getByRole('dialog').getByRole('button', { name: line }).waitFor({ state: 'detached' });
    await (await listed(page)).waitFor({ state: 'detached' });
  });
});

test('the plan and what was spent stand in the head, in dollars where the model has a price', async () => {
  const ground = new Ground();
  try {
    mkdirSync(`${ground.path('config')}/midturn`);
    writeFileSync(`${ground.path('config')}/midturn/midturn.toml`, '[models.scripted]\ninput = 3.0\noutput = 15.0\n');
    const steps = '[{text: look, status: completed}, {text: change, status: in_progress}]';
    await ground.serve(lead(
      `      - text: A plan.\n        usage: {input: 100000, output: 20000}\n        tools:\n` +
        `          - {id: p1, name: update_plan, input: {steps: ${steps}}}\n${heard('Done.')}`,
    ));
    const session = await ground.begin();
    await looking(async (page) => {
      await page.goto(ground.link(session));
      await says(page, 'Done.');
      // 100,000 at 3 dollars and 20,000 at 15 dollars a million.
      await head(page).getByText('1 agent · 120.0k tokens · $0.60').waitFor();
      await page.locator('.title').getByText(/plan 1\/2 .*120\.0k tokens · \$0\.60?/).waitFor();
      await page.getByRole('tab', { name: 'Plan' }).click();
      await page.getByRole('tabpanel').getByRole('listitem').filter({ hasText: 'look' }).waitFor();
    });
  } finally {
    await ground.end();
  }
});

test('each reason for which a reply was cut has words of its own', async () => {
  const ground = new Ground();
  const scenario =
    lead(
      streams + streams + streams +
        `      - {takes: 1s, error: invalid_request, text: "${LONG}"}\n` +
        `      - tools:\n          - {id: s1, name: spawn_agent, input: {name: child, prompt: Go.}}\n${waits('b1')}` +
        `          - {id: s2, name: stop_agent, input: {name: child}}\n${heard('The child was stopped.')}${streams}${heard('Back.')}`,
    ) + subagent('child', streams) + subagent('slow', streams);
  const interrupted = (page) => log(page).getByText(/^Response interrupted/);
  const reasons = async (page, count) => {
    let texts = [];
    // Counted and read at once: in between the page can have been loaded anew.
    await until(`${count} badges`, async () => (texts = await interrupted(page).allInnerTexts()).length === count);
    return texts.map((text) => text.replace('Response interrupted · ', ''));
  };
  /** Waits until a reply has begun to stream that was not there before. */
  const streaming = (page) => page.locator('.reply.streaming').getByText('The parser reads').waitFor();
  try {
    await ground.serve(scenario);
    const session = await ground.begin();
    await looking(async (page) => {
      await page.goto(ground.link(session));
      await streaming(page);
      await page.getByRole('button', { name: 'Stop generating response' }).click();
      await reasons(page, 1);
      await send(page, 'Again.', 'Soft');
      await streaming(page);
      await send(page, 'Something else.', 'Stop and send');
      await reasons(page, 2);
      await streaming(page);
      await send(page, 'At once.', 'Now');
      assert.deepEqual(await reasons(page, 4), [
        'stopped by you', 'you sent something else instead', 'an urgent message came', "the model's reply broke off",
      ]);
      await send(page, 'A child.', 'Soft');
      await board(page, 'child').click();
      await streaming(page);
      ground.write('b1');
      assert.deepEqual(await reasons(page, 1), ['stopped by its parent']);

      await ground.ask('POST', `sessions/${session}/agents`, { name: 'slow' });
      await ground.ask('POST', `sessions/${session}/agents/slow/limits`, { max_time: '1s' });
      await board(page, 'slow').click();
      await send(page, 'Go.', 'Soft', 'slow');
      assert.deepEqual(await reasons(page, 1), ['it came to a limit']);

      await board(page, 'lead').click();
      await send(page, 'Once more.', 'Soft');
      await streaming(page);
      ground.daemon.kill('SIGTERM');
      await new Promise((gone) => ground.daemon.once('exit', gone));
      await ground.serve(scenario);
      await page.goto(ground.link(session));
      assert.deepEqual((await reasons(page, 5)).slice(4), ['Midturn was shut down']);
      const cut = await ground.events(session, 'model_interrupted');
      assert.deepEqual(cut.map(({ reason }) => reason), [
        'user_cancelled', 'superseded', 'message_interrupt', 'error', 'stopped_by_parent', 'limit', 'shutdown',
      ]);
    });
  } finally {
    await ground.end();
  }
});
