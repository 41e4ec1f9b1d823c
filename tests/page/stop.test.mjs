// Seed 004, "Testing Checklist", "Accessibility" and "Keyboard Navigation": what a person sees and does at the page
// while an agent answers. A comment with `> 004: LINE` quotes the line (lines.txt) that the test below it proves.

import assert from 'node:assert/strict';
import test from 'node:test';

import { lead, shown } from './ground.mjs';

const LONG = 'The parser reads one word after the other and never looks back. '.repeat(6);

/** It streams for a minute; whatever is said to it then it hears. */
const STREAMING = lead(
  `      - {takes: 60s, text: "${LONG}"}\n` +
    ['Heard.', 'Heard again.', 'Heard once more.'].map((text) => `      - {takes: 200ms, text: "${text}"}\n`).join(''),
);

/** The paths that the page posts to from now on. */
function posted(page) {
  const paths = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') paths.push(new URL(request.url()).pathname.split('/').at(-1));
  });
  return paths;
}

/** Its command ends when the file is there. */
const WORKING = lead(
  '      - text: A command.\n' +
    '        tools:\n' +
    '          - {id: b1, name: bash, input: {command: "echo begun; until [ -e go ]; do sleep 0.05; done"}}\n' +
    '      - {takes: 200ms, text: "Heard."}\n',
);

const stop = (page) => page.getByRole('button', { name: 'Stop generating response' });
const send = (page) => page.getByRole('button', { name: 'Send', exact: true });
const composer = (page) => page.getByRole('textbox', { name: 'Message to lead' });
const log = (page) => page.getByRole('log');
const streams = (page) => log(page).getByText('The parser reads one').waitFor();
const says = (page, text) => log(page).getByText(text, { exact: true }).waitFor();

async function isFocused(page) {
  await page.waitForFunction(() => document.activeElement?.id === 'draft');
}

// > 004: Stop button appears during streaming
// > 004: Stop button: aria-label="Stop generating response"
test('the stop button stands in the place of send while the agent works, and beside it when there is a draft', () =>
  shown(STREAMING, async ({ page }) => {
    await streams(page);
    assert.equal(await stop(page).count(), 1);
    assert.equal(await send(page).count(), 0);
    await composer(page).fill('A finger corrects it, too.');
    await send(page).waitFor();
    assert.equal(await stop(page).count(), 1);
    await composer(page).fill('');
    await send(page).waitFor({ state: 'detached' });
    await stop(page).click();
    await send(page).waitFor();
    assert.equal(await stop(page).count(), 0);
  }));

// > 004: Clicking stop immediately halts response
// > 004: Verify partial response is visible after stop
// > 004: Backend correctly handles abort signal
// > 004: Live region announcement when generation stops
// > 004: Focus management after stop (return to input)
test('a click on stop ends the run, what was said stays with a badge, and the composer has the focus', () =>
  shown(STREAMING, async ({ page, ground, session }) => {
    await streams(page);
    await stop(page).click();
    await log(page).getByText('Response interrupted').waitFor();
    await isFocused(page);
    await page.getByRole('status').filter({ hasText: /stopped/i }).waitFor({ state: 'attached' });
    const [ended] = await ground.events(session, 'run_finished');
    assert.equal(ended.outcome, 'stopped');
    const [said] = await ground.events(session, 'model_interrupted');
    assert.ok(LONG.startsWith(said.text) && said.text.length > 10 && said.text.length < LONG.length, said.text);
    await says(page, said.text.trim());
  }));

// > 004: New message can be sent after stop
// > 004: Full flow: start chat → stream → stop → new message
test('after a stop a new message begins a new run', () =>
  shown(STREAMING, async ({ page, ground, session }) => {
    await streams(page);
    await stop(page).click();
    await send(page).waitFor();
    await composer(page).fill('Go on with the printer.');
    await composer(page).press('Enter');
    await says(page, 'Heard.');
    assert.equal(await composer(page).inputValue(), '');
    const runs = await ground.events(session, 'run_started');
    assert.equal(runs.length, 2);
  }));

// > 004: Escape key triggers stop
// > 004: Escape: Stop generation
test('Escape stops, wherever the focus is', () =>
  shown(STREAMING, async ({ page, ground, session }) => {
    await streams(page);
    await page.keyboard.press('Escape');
    await log(page).getByText('Response interrupted').waitFor();
    assert.equal((await ground.events(session, 'stop_requested')).length, 1);
  }));

// > 004: Enter key stops + queues new message
// > 004: Enter: Context-aware (send or stop+send)
// > 004: Superseded request (stop + immediately send new) does not mix content between runs
test('Enter in the mode "Stop and send" ends the run and begins one with the message, and neither has words of the other', () =>
  shown(STREAMING, async ({ page, ground, session }) => {
    await streams(page);
    await page.getByLabel('Mode').selectOption({ label: 'Stop and send' });
    await composer(page).fill('The printer instead.');
    await composer(page).press('Enter');
    await says(page, 'Heard.');
    const [cut] = await ground.events(session, 'model_interrupted');
    const replies = await ground.events(session, 'model_finished');
    assert.ok(cut.run === 1 && LONG.startsWith(cut.text), cut.text);
    assert.deepEqual(replies.map(({ run, text }) => [run, text]), [[2, 'Heard.']]);
    // The mode is remembered.
    await page.reload();
    await says(page, 'Heard.');
    assert.equal(await page.getByLabel('Mode').evaluate((select) => select.selectedOptions[0].label), 'Stop and send');
  }));

test('Enter in the usual mode corrects the agent without ending its run', () =>
  shown(WORKING, async ({ page, ground, session }) => {
    await log(page).locator('pre.tail', { hasText: 'begun' }).waitFor();
    await composer(page).fill('Only the parser.');
    await composer(page).press('Enter');
    await page.getByText('⏳').first().waitFor();
    ground.write('go');
    await says(page, 'Heard.');
    await log(page).getByText('✓ Message injected after bash at D').waitFor();
    assert.equal((await ground.events(session, 'run_started')).length, 1);
  }));

test('an empty draft sends nothing, and Shift+Enter is a newline', () =>
  shown(STREAMING, async ({ page, ground, session }) => {
    await streams(page);
    const paths = posted(page);
    await composer(page).fill('   ');
    await composer(page).press('Enter');
    await composer(page).fill('one');
    await composer(page).press('Shift+Enter');
    await composer(page).pressSequentially('two');
    assert.equal(await composer(page).inputValue(), 'one\ntwo');
    assert.deepEqual(await ground.events(session, 'message_queued'), []);
    assert.deepEqual(paths, []);
  }));

// > 004: Ensure only one abort signal is processed
test('rapid clicks on stop are one stop', () =>
  shown(STREAMING, async ({ page, ground, session }) => {
    await streams(page);
    const paths = posted(page);
    await stop(page).evaluate((button) => {
      for (let click = 0; click < 5; click += 1) button.click();
    });
    await log(page).getByText('Response interrupted').waitFor();
    assert.equal((await ground.events(session, 'stop_requested')).length, 1);
    assert.deepEqual(paths, ['stop']);
  }));

test('what one types goes to the composer, wherever the focus is', () =>
  shown(STREAMING, async ({ page }) => {
    await streams(page);
    for (const place of [log(page), page.getByRole('tab', { name: 'Conversation' }), page.getByLabel('Menu', { exact: true })]) {
      await composer(page).fill('');
      await place.focus();
      await page.keyboard.type('not that one');
      await isFocused(page);
      assert.equal(await composer(page).inputValue(), 'not that one');
    }
  }));

// > 004: Tab: Should still navigate normally during streaming
test('Tab goes on from the composer while it streams', () =>
  shown(STREAMING, async ({ page }) => {
    await streams(page);
    await composer(page).focus();
    await page.keyboard.press('Tab');
    const name = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? '');
    assert.equal(await name(), 'Stop generating response');
    await page.keyboard.press('Shift+Tab');
    assert.equal(await name(), 'Message to lead');
  }));

// > 004: Partial assistant messages are preserved with metadata
test('the badge is made from what is recorded: it is there after a reload, and no text of the answer', () =>
  shown(STREAMING, async ({ page, ground, session }) => {
    await streams(page);
    await stop(page).click();
    await log(page).getByText('Response interrupted').waitFor();
    await page.reload();
    await log(page).getByText('Response interrupted').waitFor();
    const [said] = await ground.events(session, 'model_interrupted');
    assert.ok(!said.text.includes('interrupted'));
  }));
