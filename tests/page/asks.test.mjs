// What an agent asks a person: shown whole, answered by nothing but a person's own click, and there until then.

import assert from 'node:assert/strict';
import test from 'node:test';

import { lead, shown, until } from './ground.mjs';

const composer = (page) => page.getByRole('textbox', { name: 'Message to lead' });
const asks = (page, agent = 'lead') => page.getByRole('region', { name: `${agent} asks` });
const button = (page, name) => page.locator('.ask').getByRole('button', { name, exact: true });
const says = (page, text) => page.getByRole('log').getByText(text, { exact: true }).waitFor();
const answers = (ground, session) => ground.events(session, 'approval_resolved');

/** A text as YAML has it, its unusual characters written out. */
const yaml = (text) => JSON.stringify(text).replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** A lead that is ready, then asks about each of these commands, turn by turn. */
function asking(...commands) {
  const turns = commands.map((command, n) => `      - tools: [{id: b${n + 1}, name: bash, input: {command: ${yaml(command)}}}]\n`);
  return lead(`      - {text: Ready.}\n${turns.join('')}      - {text: Done.}\n      - {text: Heard once more.}\n`);
}

/** A page that follows a session in which a command needs a person's word. */
function asked(scenario, look) {
  return shown(scenario, async (all) => {
    await says(all.page, 'Ready.');
    await look(all);
  }, { words: ['--mode', 'ask'] });
}

/** Somebody else says something to an agent. */
const tell = (ground, session, text = 'Go.', agent = 'lead') =>
  ground.ask('POST', `sessions/${session}/agents/${agent}/messages`, { text });

/** Clicks until the daemon has one answer more: a request that has just changed is not answered. */
async function click(all, name) {
  const { page, ground, session } = all;
  const before = (await answers(ground, session)).length;
  await until(`an answer of "${name}"`, async () => {
    // It may be gone in between: this waits for nothing.
    await button(page, name).evaluateAll((buttons) => buttons.forEach((one) => one.click()));
    return (await answers(ground, session)).length > before;
  });
  return (await answers(ground, session)).at(-1);
}

const isTyping = (page) => page.evaluate(() => document.activeElement?.id === 'draft');

test('a command is shown whole, and what hides in it is named', () => {
  const long = `echo one\u202egnp.sh \u200b\u{e0041} \u0007${'x'.repeat(5000)} && touch last-words`;
  return asked(asking(long), async ({ page, ground, session }) => {
    await tell(ground, session);
    await asks(page).waitFor();
    const text = await asks(page).locator('.command').innerText();
    for (const named of ['‹U+202E›gnp.sh', '‹U+200B›', '‹U+E0041›', '‹U+0007›', 'touch last-words']) assert.ok(text.includes(named), named);
    assert.equal(text.split('x').length - 1, 5000);
    assert.doesNotMatch(await asks(page).innerText(), /[\u202e\u200b\u0007]/);
  });
});

test('once, in this session and no with a reason reach the daemon, and the model reads the reason', () =>
  asked(asking('touch one', 'echo two', 'echo two', 'touch four'), async (all) => {
    const { page, ground, session } = all;
    await tell(ground, session);
    await asks(page).filter({ hasText: 'touch one' }).waitFor();
    const { tool, decision, by } = await click(all, 'Once');
    assert.deepEqual([tool, decision, by], ['b1', 'once', 'user']);
    await asks(page).filter({ hasText: 'echo two' }).waitFor();
    const allowed = await click(all, /^In this session/);
    assert.deepEqual([allowed.tool, allowed.decision], ['b2', 'session']);
    // The same command again is not asked about; another one is.
    await asks(page).filter({ hasText: 'touch four' }).waitFor();
    await page.getByRole('textbox', { name: 'Why not' }).fill('It is the wrong file.');
    const no = await click(all, 'No');
    assert.deepEqual([no.decision, no.reason], ['denied', 'It is the wrong file.']);
    const { messages } = await ground.ask('GET', `sessions/${session}/agents/lead/conversation`);
    assert.ok(JSON.stringify(messages).includes('It is the wrong file.'));
    await until('the focus is where one types', () => isTyping(page));
  }));

test('a request never takes the focus, and no key that one types answers it', () =>
  asked(asking('touch one'), async ({ page, ground, session }) => {
    await composer(page).pressSequentially('half');
    await tell(ground, session);
    await asks(page).waitFor();
    assert.ok(await isTyping(page), 'the focus moved');
    await page.keyboard.type(' a thought, y 1 ');
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Queued messages' }).getByText('half a thought, y 1').waitFor();
    assert.ok(await isTyping(page), 'the focus moved');
    assert.deepEqual(await answers(ground, session), []);
    assert.equal(await asks(page).count(), 1);
  }));

test('an answer given elsewhere takes the request away, and a click meant for it does not answer the next one', () =>
  asked(asking('touch one', 'touch two'), async (all) => {
    const { page, ground, session } = all;
    await tell(ground, session);
    await asks(page).filter({ hasText: 'touch one' }).waitFor();
    // The finger is on its way: it comes down in the instant in which the next request is drawn. The watch stands before anything is
    // answered, for asking the daemon holds up what was only said to the browser.
    await page.evaluate(() => {
      const look = new MutationObserver(() => {
        const ask = document.querySelector('.ask');
        if (!ask?.textContent?.includes('touch two')) return;
        look.disconnect();
        ask.querySelector('button.yes').click();
        document.body.dataset.clicked = 'yes';
      });
      look.observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    await ground.ask('POST', `sessions/${session}/agents/lead/approvals/b1`, { decision: 'once' });
    await page.locator('body[data-clicked]').waitFor();
    const { tool, decision } = await click(all, 'No');
    assert.deepEqual([tool, decision], ['b2', 'denied'], 'it was answered by the click for the first one');
    await asks(page).waitFor({ state: 'detached' });
    assert.equal((await answers(ground, session)).length, 2);
  }));

test("of several that ask the chosen agent's request is shown, and how many more there are", () => {
  const subagent =
    '  - name: one\n    start: spawned\n    model:\n' +
    '      - tools: [{id: o1, name: bash, input: {command: touch of-one}}]\n      - {text: One is done.}\n';
  return asked(asking('touch of-lead') + subagent, async (all) => {
    const { page, ground, session } = all;
    await ground.ask('POST', `sessions/${session}/agents`, { name: 'one', prompt: 'Go.' });
    // Nobody else asks: the oldest is shown, whoever is looked at.
    await asks(page, 'one').filter({ hasText: 'touch of-one' }).waitFor();
    assert.equal(await page.getByText('more ask').count(), 0);
    await tell(ground, session);
    await asks(page, 'lead').filter({ hasText: '1 more ask' }).waitFor();
    const one = page.getByRole('navigation').getByRole('button').filter({ has: page.locator('.name').getByText('one', { exact: true }) });
    await one.click();
    await asks(page, 'one').filter({ hasText: '1 more ask' }).waitFor();
    assert.equal(await asks(page, 'lead').count(), 0);
    const { agent } = await click(all, 'Once');
    assert.equal(agent, 'one');
    await asks(page, 'lead').waitFor();
    assert.equal(await page.getByText('more ask').count(), 0);
  });
});

test('a page that nobody sees stays attached, and after a reload the request is there', () =>
  asked(asking('touch one'), async (all) => {
    const { page, ground, session } = all;
    const hide = (isHidden) => page.evaluate((hidden) => {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
      document.dispatchEvent(new Event('visibilitychange'));
    }, isHidden);
    await hide(true);
    await tell(ground, session);
    await until('it asks', async () => (await ground.events(session, 'approval_requested')).length === 1);
    assert.deepEqual(await answers(ground, session), [], 'nobody was attached');
    // The title tells of it in the list of tabs, once one looks.
    await hide(false);
    await asks(page).waitFor();
    await page.reload();
    await asks(page).filter({ hasText: 'touch one' }).waitFor();
    assert.match(await page.title(), /^\(1\) /);
    const { decision } = await click(all, 'Once');
    assert.equal(decision, 'once');
    await says(page, 'Done.');
  }));
