// What a person says to lines of an agent's diff while it works: it goes as one message, stands below its lines, and
// says what became of it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import test from 'node:test';

import { Ground, lead, looking, once, shown, until } from './ground.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const bash = (id, command) => `          - {id: ${id}, name: bash, input: {command: "${command}"}}\n`;
const waits = (id) => bash(id, `echo ${id} begun; until [ -e ${id} ]; do sleep 0.05; done`);
const heard = (...texts) => texts.map((text) => `      - {takes: 200ms, text: "${text}"}\n`).join('');
const CODE = "printf 'fn main() {\\\\n    open();\\\\n    close();\\\\n}\\\\n' > main.rs";

/** Six calls, of which the first writes a file and the third waits; what the agent is told by then changes the file. */
const SIX = lead(
  `      - text: Six calls.\n        tools:\n${bash('b1', CODE)}${bash('b2', 'git add -N main.rs')}${waits('b3')}${['b4', 'b5', 'b6'].map((id) => bash(id, `echo ${id}`)).join('')}` +
    `      - text: I load it.\n        tools:\n${bash('c1', "sed -i 's/open/load/' main.rs")}${heard('It loads now.')}`,
);

const log = (page) => page.getByRole('log');
const tab = (page, name) => page.getByRole('tab', { name }).click();
const diff = (page) => page.getByLabel('Diff', { exact: true });
const button = (page, where) => diff(page).getByRole('button', { name: `Comment on ${where}`, exact: true });
const text = (page, where) => diff(page).getByRole('textbox', { name: `Comment on ${where}`, exact: true });

/** The row of a line, and what stands right below it. */
const below = (page, code) => diff(page).locator('.row', { hasText: code }).locator('xpath=following-sibling::*[1]');

async function commented(page, where, words) {
  await button(page, where).focus();
  await page.keyboard.press('Enter');
  await text(page, where).fill(words);
  await text(page, where).press('Enter');
}

/** What axe finds in both schemes, wide and narrow; what doesn't fit, and what a finger can't hit. */
async function isWhole(page, state) {
  for (const [width, height] of [[1280, 800], [360, 740]]) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
      assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`), [], `${state} ${colorScheme} ${width}`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${state} is too wide at ${width}`);
      if (process.env.MIDTURN_LOOK) await page.screenshot({ path: `${process.env.MIDTURN_LOOK}/${state}-${colorScheme}-${width}.png` });
    }
    if (width === 360) {
      const small = await page.evaluate(() => [...document.querySelectorAll('.pane button, .pane textarea')]
        .map((one) => ({ one, box: one.getBoundingClientRect() }))
        .filter(({ box }) => box.width > 0 && (box.width < 43.5 || box.height < 43.5))
        .map(({ one, box }) => `${one.outerHTML.slice(0, 120)} is ${box.width} × ${box.height}`));
      assert.deepEqual(small, [], state);
    }
  }
  await page.setViewportSize({ width: 1280, height: 800 });
}

/** The comment on `open();` is on its way; it is read in the middle of the calls, and obeyed. */
async function isRead(page, ground) {
  await below(page, 'open();').getByText('⚡ Will inject ASAP (may skip tools)').waitFor();
  ground.write('b3');
  await below(page, 'open();').getByText(/✓ Message injected after bash at C, 3 calls skipped, .* · answered/).waitFor();
  await below(page, 'open();').getByText('It said: I load it.').waitFor();
  await tab(page, 'Conversation');
  await log(page).getByText('It loads now.', { exact: true }).waitFor();
}

test('a comment on a line, sent in the third of six calls, is in the next request with file, line and code, and the calls behind it do not run', () =>
  shown(SIX, async ({ page, ground, session }) => {
    await log(page).locator('pre.tail', { hasText: 'b3 begun' }).waitFor();
    await tab(page, 'Diff');
    await commented(page, 'main.rs:2', 'Say load here, not open.');
    await commented(page, 'main.rs:3', 'And this stays.');
    await below(page, 'open();').getByText('Say load here, not open.').waitFor();
    await below(page, 'close();').getByText('Not sent yet').waitFor();
    await isWhole(page, 'comments');
    await page.getByLabel('Mode').selectOption({ label: 'Sooner' });
    await diff(page).getByText('⚡ Will inject ASAP (may skip tools)').waitFor();
    await diff(page).getByRole('button', { name: 'Send 2 comments' }).click();
    await isRead(page, ground);

    const status = Object.fromEntries((await ground.events(session, 'tool_finished')).map(({ tool, status }) => [tool, status]));
    assert.deepEqual(status, { b1: 'completed', b2: 'completed', b3: 'completed', b4: 'skipped', b5: 'skipped', b6: 'skipped', c1: 'completed' });
    const { messages } = await ground.ask('GET', `sessions/${session}/agents/lead/conversation`);
    const rows = messages.map((row) => JSON.stringify(row));
    const words = '2 comments on your diff:\n\n1. main.rs:2\n   >     open();\n   Say load here, not open.\n\n2. main.rs:3\n   >     close();\n   And this stays.';
    const read = rows.findIndex((row) => row.includes(JSON.stringify(words).slice(1, -1)));
    assert.ok(read > 0 && rows[read + 1].includes('I load it.'), rows.join('\n'));

    // The one line has changed since and the other has not.
    await tab(page, 'Diff');
    await diff(page).getByText('load();').waitFor();
    const gone = diff(page).getByLabel('Comments on lines that have changed');
    await gone.getByText('The line has changed since').waitFor();
    await gone.getByText(/✓ Message injected after bash at C, 3 calls skipped/).waitFor();
    await gone.getByText('It said: I load it.').waitFor();
    assert.equal(await gone.getByText('And this stays.').count(), 0);
    await below(page, 'close();').getByText('And this stays.').waitFor();
    await isWhole(page, 'changed');
    // Another page reads all of it in the messages.
    await page.reload();
    await tab(page, 'Diff');
    await below(page, 'close();').getByText('And this stays.').waitFor();
    await gone.getByText('It said: I load it.').waitFor();
  }));

test('comments are drafts: they survive a reload, a refusal and a line that is gone, and Escape stops nobody', () =>
  shown(SIX, async ({ page, ground, session }) => {
    await log(page).locator('pre.tail', { hasText: 'b3 begun' }).waitFor();
    await tab(page, 'Diff');
    await button(page, 'main.rs:2').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await page.locator('#note:focus').waitFor();
    await page.keyboard.type('Half a sentence');
    await page.keyboard.press('Escape');
    await below(page, 'open();').getByText('Half a sentence').waitFor();
    assert.equal((await ground.events(session, 'stop_requested')).length, 0);
    // An empty one is none.
    await button(page, 'main.rs:3').click({ force: true });
    await text(page, 'main.rs:3').press('Enter');
    await diff(page).getByRole('button', { name: 'Send 1 comment', exact: true }).waitFor();
    await page.reload();
    await tab(page, 'Diff');
    await below(page, 'open();').getByText('Half a sentence').waitFor();
    await once(page, '**/messages', (route) => route.fulfill({
      status: 409, contentType: 'application/problem+json',
      json: { type: 'about:blank', title: 'No', status: 409, code: 'mailbox_full', detail: 'full' },
    }));
    await diff(page).getByRole('button', { name: 'Send 1 comment' }).click();
    await page.locator('.refused').getByText('The mailbox is full').waitFor();
    await below(page, 'open();').getByText('Not sent yet').waitFor();
    assert.equal(await page.locator('#draft').inputValue(), '');
    await below(page, 'open();').getByRole('button', { name: 'Edit' }).click();
    await text(page, 'main.rs:2').press('End');
    await page.keyboard.type(', and the rest.');
    await page.keyboard.press('Enter');
    // Too long is not taken, and said.
    await below(page, 'open();').getByRole('button', { name: 'Edit' }).click();
    await page.locator('#note:focus').waitFor();
    await page.keyboard.insertText('x'.repeat(2001));
    await page.locator('.refused').getByText('a comment has at most 2000 characters').waitFor();
    await text(page, 'main.rs:2').press('Enter');
    ground.write('main.rs', 'nothing of it\n');
    await diff(page).getByRole('button', { name: 'Look again' }).click();
    const gone = diff(page).getByLabel('Comments on lines that have changed');
    await gone.getByText('Half a sentence, and the rest.').waitFor();
    await gone.getByRole('button', { name: 'Drop' }).click();
    await gone.waitFor({ state: 'detached' });
    ground.write('b3');
    await tab(page, 'Conversation');
    await log(page).getByText('It loads now.', { exact: true }).waitFor();
  }));

test('a diff of 10 MiB is cut and said to be, and what was said to it stays within the page', () =>
  shown(lead(heard('Ready.')), async ({ page, ground, session }) => {
    await log(page).getByText('Ready.', { exact: true }).waitFor();
    ground.write('big.txt', `${'a line of a large file\n'.repeat(200_000)}${'x'.repeat(6 << 20)}\n`);
    ground.git('add', '-N', 'big.txt');
    await tab(page, 'Diff');
    await diff(page).getByText('The rest is left out: it is too much for one answer.').waitFor();
    await diff(page).getByText(/^\d+ more lines: midturn diff has all of them\.$/).waitFor();
    assert.ok(await page.evaluate(() => document.querySelectorAll('*').length) < 5000, 'too many elements');
    await commented(page, 'big.txt:9', 'So many lines.');
    await diff(page).getByRole('button', { name: 'Send 1 comment', exact: true }).click();
    await until('it has read it', async () => (await ground.events(session, 'message_injected')).length === 1);
    await diff(page).getByText(/✓ Message injected at the start of a run/).waitFor();
  }));

test("a comment on a subagent's branch, sent in the third of its six calls, is in its next request with file, line and code, and the calls behind it do not run", async () => {
  const ground = new Ground();
  try {
    // Its worktree is its own: what it waits for stands in the project.
    const six = SIX.replace('-e b3', `-e ${ground.path('project/b3')}`).split('model:\n')[1];
    const spawn = `      - tools: [{id: s1, name: spawn_agent, input: {name: worker, prompt: Go.}}]\n${heard('Both of us.', 'Heard.')}`;
    await ground.serve(`${lead(spawn)}  - name: worker\n    start: spawned\n    model:\n${six}`);
    const session = await ground.begin();
    await looking(async (page) => {
      await page.goto(ground.link(session));
      const named = page.locator('.name').getByText('worker', { exact: true });
      await page.getByRole('navigation', { name: 'Agents' }).getByRole('button').filter({ has: named }).click();
      await log(page).locator('pre.tail', { hasText: 'b3 begun' }).waitFor();
      await tab(page, 'Diff');
      await commented(page, 'main.rs:2', 'Say load here, not open.');
      await page.getByLabel('Mode').selectOption({ label: 'Sooner' });
      await diff(page).getByRole('button', { name: 'Send 1 comment', exact: true }).click();
      await isRead(page, ground);
    });
    const status = Object.fromEntries((await ground.events(session, 'tool_finished')).filter(({ agent }) => agent === 'worker').map(({ tool, status }) => [tool, status]));
    assert.deepEqual(status, { b1: 'completed', b2: 'completed', b3: 'completed', b4: 'skipped', b5: 'skipped', b6: 'skipped', c1: 'completed' });
    const { messages } = await ground.ask('GET', `sessions/${session}/agents/worker/conversation`);
    const rows = messages.map((row) => JSON.stringify(row));
    const words = 'main.rs:2\n   >     open();\n   Say load here, not open.';
    const read = rows.findIndex((row) => row.includes(JSON.stringify(words).slice(1, -1)));
    assert.ok(read > 0 && rows[read + 1].includes('I load it.'), rows.join('\n'));
    assert.equal((await ground.ask('GET', `sessions/${session}/agents/worker`)).branch, `midturn/${session}/worker`);
  } finally {
    await ground.end();
  }
});

test('a session that nobody carries takes no comments on its diff until it is resumed, which the page offers', () =>
  shown(SIX, async ({ page, ground, session }) => {
    await log(page).locator('pre.tail', { hasText: 'b3 begun' }).waitFor();
    ground.write('b3');
    await log(page).getByText('It loads now.', { exact: true }).waitFor();
    await ground.ended('SIGTERM');
    await ground.serve(lead(heard('Heard.')));
    await page.goto(ground.link(session));
    await tab(page, 'Diff');
    await diff(page).getByText('load();').waitFor();
    await page.getByText('This session is only stored.').waitFor();
    assert.equal(await button(page, 'main.rs:2').count(), 0);
    await page.getByRole('button', { name: 'Resume it' }).click();
    await page.getByRole('textbox', { name: 'Message to lead' }).waitFor();
    await tab(page, 'Diff');
    await commented(page, 'main.rs:2', 'Say read, not load.');
    await diff(page).getByRole('button', { name: 'Send 1 comment', exact: true }).click();
    await below(page, 'load();').getByText(/✓ Message injected at the start of a run/).waitFor();
  }));
