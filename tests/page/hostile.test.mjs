// What models, tools and files say is text, whatever it would like to be.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import test from 'node:test';

import { lead, shown, until } from './ground.mjs';

/** A text as YAML has it, its unusual characters written out. */
const yaml = (text) => JSON.stringify(text).replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

const TAGS = '<img src="http://evil.example/x" onerror="window.owned=1"><script>window.owned=1</script><svg/onload=window.owned=1>';
const HIDDEN = '\u202etxt.exe\u202c \u200b\u061c\ufeff\u2066x\u2069 \u001b[31mred\u001b]0;owned\u0007\u009b2J\u0085';
const LINKS = '[a](javascript:window.owned=1) [b](data:text/html,<script>1</script>) [c](https://good.example/<b>) ' +
  '![d](http://evil.example/d.png) [e]: http://evil.example [f](vbscript:x) <javascript:window.owned=1> [g](&#106;avascript:window.owned=1)';
const EVIL = `${TAGS} ${LINKS} ${HIDDEN}`;

const log = (page) => page.getByRole('log');
const composer = (page) => page.getByRole('textbox', { name: 'Message to lead' });

/** What characters no text of the page may have, its attributes included: they act, or hide. */
const ACTS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/;

/** Throws if anything on the page is more than text. */
async function isInert(page, where) {
  const found = await page.evaluate(() => {
    const foreign = 'img, iframe, frame, object, embed, video, audio, svg, math, style, link, meta, base, script, template';
    const links = [...document.querySelectorAll('a, area')].map((link) => link.href);
    const texts = [document.title, document.body.innerText];
    for (const one of document.body.querySelectorAll('*')) for (const { value } of one.attributes) texts.push(value);
    const handlers = [...document.body.querySelectorAll('*')].flatMap((one) => [...one.attributes]).filter(({ name }) => name.startsWith('on'));
    return {
      owned: window.owned,
      elements: [...document.querySelectorAll(`#app :is(${foreign})`)].map((one) => one.outerHTML),
      links: links.filter((link) => !/^(https?|mailto):/.test(link)),
      handlers: handlers.map(({ name }) => name),
      texts,
    };
  });
  const { texts, ...rest } = found;
  assert.deepEqual(rest, { owned: undefined, elements: [], links: [], handlers: [] }, where);
  for (const text of texts) assert.doesNotMatch(text, ACTS, `${where}: ${JSON.stringify(text.match(ACTS)?.[0])} in ${text.slice(0, 200)}`);
}

/** Requests of the page that go to anybody but its own server. */
function elsewhere(page, context) {
  const { host } = new URL(page.url());
  const others = [];
  context.on('request', (request) => {
    if (new URL(request.url()).host !== host) others.push(request.url());
  });
  context.on('page', (other) => others.push(`a window: ${other.url()}`));
  page.on('dialog', (dialog) => others.push(`a dialog: ${dialog.message()}`));
  return others;
}

const call = (id, name, input) => `          - {id: ${id}, name: ${yaml(name)}, input: ${input}}\n`;
const HOSTILE = lead(
  `      - text: Ready.\n` +
    `      - thinking: ${yaml(EVIL)}\n        text: ${yaml(`# ${EVIL}\n\n> ${EVIL}\n\n- ${EVIL}\n\n| a |\n|---|\n| ${EVIL} |\n\n\`\`\`\n${EVIL}\n\`\`\`\n\nnul \u0000 end`)}\n` +
    '        tools:\n' +
    call('p1', 'update_plan', `{steps: [{text: ${yaml(EVIL)}, status: in_progress}]}`) +
    call('b1', 'bash', `{command: ${yaml(`cat evil; printf '\\355\\240\\200 \\000 \\377'; : ${HIDDEN} ${TAGS.replaceAll('"', '')}`)}, ${yaml(TAGS)}: ${yaml(EVIL)}}`) +
    call('u1', `<img src=x onerror=window.owned=1>\u202e`, `{path: ${yaml(EVIL)}}`) +
    call('w1', 'write', `{path: "a<img src=x onerror=window.owned=1>\\u202e.txt", content: ${yaml(EVIL)}}`) +
    `      - {text: Done.}\n      - {text: Heard.}\n`,
);

test('markup, scripts, links and hidden characters stay inert text, wherever they come from', () =>
  shown(HOSTILE, async ({ page, ground, session, context }) => {
    const others = elsewhere(page, context);
    ground.write('evil', `${EVIL}\n`);
    await log(page).getByText('Ready.', { exact: true }).waitFor();
    await ground.ask('POST', `sessions/${session}/agents/lead/messages`, { text: EVIL.replaceAll('\u0000', '') });
    // Each request for a word is looked at, and answered.
    const seen = new Set();
    await until('it is done', async () => {
      const { approvals } = await ground.ask('GET', `sessions/${session}/approvals`);
      for (const { agent, tool } of approvals) {
        await page.locator('.ask .whole').waitFor();
        if (tool === 'b1') await page.locator('.ask').getByText('‹U+202E›').first().waitFor();
        await isInert(page, `a request for ${tool}`);
        await ground.ask('POST', `sessions/${session}/agents/${agent}/approvals/${tool}`, tool === 'u1' ? { decision: 'denied', reason: TAGS } : { decision: 'once' });
        seen.add(tool);
      }
      return (await log(page).getByText('Done.', { exact: true }).count()) === 1;
    });
    assert.ok(seen.has('b1') && seen.has('w1'), [...seen].join());
    // All of it is open: thinking, calls with their arguments and outputs.
    for (const summary of await log(page).locator('summary').all()) await summary.click();
    await log(page).getByText('window.owned=1').first().waitFor();
    await isInert(page, 'the conversation');
    assert.equal(await log(page).locator('a').filter({ hasText: 'c' }).first().getAttribute('href'), 'https://good.example/%3Cb%3E');
    for (const tab of ['Plan', 'Diff']) {
      await page.getByRole('tab', { name: tab }).click();
      await page.getByRole('tabpanel').getByText('window.owned=1').first().waitFor();
      await isInert(page, tab);
    }
    await page.reload();
    await log(page).getByText('Done.', { exact: true }).waitFor();
    await isInert(page, 'after a reload');
    assert.deepEqual(others, []);
  }, { words: ['--mode', 'ask'] }));

test('what the server lists of sessions, agents and errors is text, lone surrogates and all', () =>
  shown(lead('      - {text: Ready.}\n'), async ({ page, ground, context }) => {
    const others = elsewhere(page, context);
    await log(page).getByText('Ready.', { exact: true }).waitFor();
    const evil = `${EVIL} \ud800 \udfff`;
    await page.route(/\/agents$/, async (route) => {
      if (route.request().method() !== 'GET') {
        const body = JSON.stringify({ type: 'about:blank', title: evil, status: 409, code: evil, detail: evil });
        return route.fulfill({ status: 409, contentType: 'application/problem+json', body });
      }
      const response = await route.fetch();
      const { agents, ...rest } = await response.json();
      const plan = [{ text: evil, status: evil }];
      agents[0] = { ...agents[0], model: evil, branch: evil, plan };
      agents.push({ ...agents[0], name: 'untold', state: 'idle', last_end: { run: 1, outcome: evil, text: evil }, plan });
      return route.fulfill({ response, json: { agents, ...rest } });
    });
    await ground.ask('POST', 'sessions', { task: EVIL, answers: false });
    await page.reload();
    await page.getByRole('navigation').getByText('untold').first().click();
    await page.getByRole('tab', { name: 'Plan' }).click();
    await page.getByRole('tabpanel').getByText('window.owned=1').first().waitFor();
    await isInert(page, 'the plan that is listed');
    await page.getByRole('button', { name: '+ Agent' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('other');
    await page.getByRole('dialog').getByRole('button', { name: 'Spawn' }).click();
    await page.getByRole('alert').waitFor();
    await isInert(page, 'an error');
    await page.keyboard.press('Escape');
    await page.getByLabel('Menu', { exact: true }).click();
    await page.getByRole('button', { name: 'Sessions' }).click();
    await page.getByRole('dialog').getByText('window.owned=1').first().waitFor();
    await isInert(page, 'the list of sessions');
    await page.getByRole('dialog').getByRole('button').filter({ hasText: 'window.owned=1' }).first().click();
    await page.getByRole('heading', { level: 1 }).getByText('window.owned=1').waitFor();
    await isInert(page, 'a session with such a title');
    assert.deepEqual(others, []);
  }));

test('ten mebibytes of markup, and what is nested too deep, leave the page small and are text', () => {
  const nested = `${'> '.repeat(3000)}deep`;
  const scenario = lead(
    `      - text: ${yaml(nested)}\n        tools:\n` +
      `          - {id: b1, name: bash, input: {command: "head -c 10485760 /dev/zero | tr '\\\\0' '<'"}}\n` +
      `      - text: ${yaml(TAGS.repeat(5000))}\n      - {text: Heard.}\n`,
  );
  return shown(scenario, async ({ page, ground }) => {
    writeFileSync(ground.path('project/large'), `${TAGS}\n`.repeat(90_000));
    ground.git('add', 'large');
    await log(page).getByText('finished after 2 turns').waitFor();
    await log(page).locator('.call summary').click();
    await log(page).locator('pre.output').waitFor();
    await isInert(page, 'a long output');
    await page.getByRole('tab', { name: 'Diff' }).click();
    await page.getByLabel('Diff').getByText('window.owned=1').first().waitFor();
    await isInert(page, 'a long diff');
    const elements = await page.locator('#app *').count();
    assert.ok(elements < 5000, `${elements} elements`);
    await page.getByRole('tab', { name: 'Conversation' }).click();
    await composer(page).pressSequentially('Ten keys !');
    assert.equal(await composer(page).inputValue(), 'Ten keys !');
    await composer(page).press('Enter');
    await log(page).getByText('Heard.', { exact: true }).waitFor();
  });
});
