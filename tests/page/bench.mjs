// How long the page takes: `tests/page/run bench.mjs`, by hand. Words after it name what is measured.

import { busy, furnish, heap, says } from './busy.mjs';
import { Ground, lead, looking, until } from './ground.mjs';

const MIB = 1 << 20;
const KEYS = Number(process.env.MIDTURN_BENCH_KEYS ?? 200);

/** Tells from the start on when the page first showed what is said, and how long nothing else could be done. */
function clock() {
  globalThis.clocked = { opened: undefined, stood: 0, keys: [] };
  const { clocked } = globalThis;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) clocked.stood = Math.max(clocked.stood, duration);
  }).observe({ type: 'longtask', buffered: true });
  new MutationObserver(() => {
    clocked.opened ??= document.querySelector('.reply.streaming') ? performance.now() : undefined;
  }).observe(document, { subtree: true, childList: true });
  // From the browser's own time of the key to the end of the frame that shows it.
  const shown = (pressed) => () => setTimeout(() => clocked.keys.push(performance.now() - pressed));
  addEventListener('keydown', ({ timeStamp }) => requestAnimationFrame(shown(timeStamp)), { capture: true });
}

/** Types for a while, ten keys a second. */
async function types(page) {
  const composer = page.getByRole('textbox', { name: 'Message to lead' });
  await composer.focus();
  await page.evaluate(() => (globalThis.clocked.keys = []));
  await page.keyboard.type('one types '.repeat(KEYS / 10), { delay: 100 });
  const keys = await page.evaluate(() => globalThis.clocked.keys);
  keys.sort((one, other) => one - other);
  return keys;
}

const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
const ms = (time) => `${time.toFixed(0)} ms`;

function row(what, here) {
  console.log(`| ${what} | ${here} |`);
}

/** A session of this scenario, and pages that look at it. */
async function session(scenario, look) {
  const ground = new Ground();
  try {
    furnish(ground);
    await ground.serve(scenario);
    await look(ground, await ground.begin());
  } finally {
    await ground.end();
  }
}

/** One page that looks at a session, from its first paint on. */
const page = (ground, id, look, prepared = async () => {}) =>
  looking(async (page, context) => {
    await page.goto(ground.link(id));
    await page.getByRole('textbox', { name: 'Message to lead' }).waitFor();
    // With its token, as on any later day.
    await context.addInitScript(clock);
    await prepared(page);
    await page.reload();
    await look(page, context);
  });

async function opening(events) {
  await session(busy({ events: events * 1.1, seconds: 900 }), async (ground, id) => {
    await until(`${events} events`, () => says(ground, id, events), 600_000);
    const all = [];
    for (let n = 0; n < 5; n += 1) {
      await page(ground, id, async (page) => {
        await page.locator('.reply.streaming').waitFor();
        const [paint] = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint').map(({ startTime }) => startTime));
        all.push({ paint, ...(await page.evaluate(() => globalThis.clocked)) });
      });
    }
    const middle = (name) => ms(at(all.map((one) => one[name]).sort((one, other) => one - other), 0.5));
    row(`${events} events, 21 speak: first paint`, middle('paint'));
    row('… all of them folded and shown', middle('opened'));
    row('… the longest that the page stood still meanwhile', middle('stood'));
    await page(ground, id, async (page, context) => {
      await page.locator('.reply.streaming').waitFor();
      const keys = await types(page);
      row('… a key to the frame that shows it, p50, p95, most', [0.5, 0.95, 1].map((share) => ms(at(keys, share))).join(', '));
      row('… heap after a collection', `${((await heap(context, page)) / MIB).toFixed(1)} MiB`);
      row('… elements', await page.evaluate(() => document.querySelectorAll('*').length));
    });
  });
}

const reply = (text, takes = '2s') => lead(`      - {takes: 3s, text: "One."}\n`).replace('{takes: 3s, text: "One."}', JSON.stringify({ takes, text }));
const call = (command) => reply('').replace('"text":""', `"text":"One.","tools":[${JSON.stringify({ id: 'b1', name: 'bash', input: { command } })}]`);

/** An agent that says so much, turn after turn. */
const manyReplies = (text, turns) => {
  const one = (_, n) => ({ text, tools: [{ id: `r${n}`, name: 'read', input: { path: 'notes.txt', limit: 1 } }] });
  const model = [...Array.from({ length: turns }, one), { takes: '1s', text: 'Done.' }];
  return JSON.stringify({ midturn: 1, name: 'many', agents: [{ name: 'lead', role: 'lead', model }] });
};

const MARKDOWN = 'A **word**, `code` and [a link](https://example.org).\n\n- one\n- two\n\n';

const IDLE = lead('      - {takes: 900s, text: "One."}\n');

/** The stream of a session in which a reply of this text ends: a scenario has 4 MiB at most. */
async function says_at_once(page, text) {
  let isFirst = true;
  await page.route('**/events?*', async (route) => {
    if (!isFirst) return;
    isFirst = false;
    const events = [
      { type: 'agent_spawned', role: 'lead', prompt: 'Go.' },
      { type: 'run_started', run: 1, trigger: 'prompt' },
      { type: 'model_started', run: 1, turn: 1, call: 1, messages: 1 },
      { type: 'model_finished', run: 1, turn: 1, stop_reason: 'end_turn', usage: {}, text, thinking: [], tools: [] },
      { type: 'run_finished', run: 1, outcome: 'finished', turns: 1, usage: {} },
    ];
    const frame = (event, n) => `id: ${n + 1}\nevent: ${event.type}\ndata: ${JSON.stringify({ v: 1, seq: n + 1, t: 1, agent: 'lead', ...event })}\n\n`;
    await route.fulfill({ contentType: 'text/event-stream', body: events.map(frame).join('') });
  });
}

/** What is too much, and a scenario that says it, or the text of a reply in its stream. */
const ATTACKS = [
  ['10 MiB of output, printed', call("yes 'a line of output, and another one' | head -c 10485760")],
  ['10 MiB of output in one line', call("head -c 10485760 /dev/zero | tr '\\\\0' x")],
  ['3 MiB of markdown', reply(MARKDOWN.repeat((3 * MIB) / MARKDOWN.length))],
  ['10 MiB of markdown', IDLE, MARKDOWN.repeat((10 * MIB) / MARKDOWN.length)],
  ['3,000 nested >', reply(`${'>'.repeat(3000)} deep`)],
  ['30,000 characters of nested >', reply(`${'> '.repeat(15_000)}deep`)],
  ['30,000 characters of **', reply('**a '.repeat(7_500))],
  ['30,000 characters of [', reply('['.repeat(30_000))],
  ['30,000 characters of a table', reply(`|a|b|\n|-|-|\n${'|c|d|\n'.repeat(5_000)}`)],
  ['one line of 3 MiB', reply('x'.repeat(3 * MIB))],
  ['one line of 15 MiB', IDLE, 'x'.repeat(15 * MIB)],
  ['one line of 17 MiB', IDLE, 'x'.repeat(17 * MIB)],
  ['60 replies of 30,000 characters of *', manyReplies('*a* '.repeat(7_500), 60)],
  ['300 replies of 4,000 characters', manyReplies(MARKDOWN.repeat(4_000 / MARKDOWN.length), 300)],
  ['100,000 words in a second', reply('a '.repeat(100_000), '1s')],
];

async function attack([what, scenario, text]) {
  await session(scenario, (ground, id) =>
    page(ground, id, async (page, context) => {
      const keys = await types(page);
      const stood = await page.evaluate(() => globalThis.clocked.stood);
      const used = ((await heap(context, page)) / MIB).toFixed(1);
      const length = await page.evaluate(() => document.body.textContent.length);
      const elements = await page.evaluate(() => document.querySelectorAll('*').length);
      const shown = await page.evaluate(() => document.body.innerText.slice(-1000).replaceAll(/\s+/g, ' ').slice(-160));
      row(what, `stood still ${ms(stood)}, key p95 ${ms(at(keys, 0.95))}, most ${ms(at(keys, 1))}, heap ${used} MiB, ${elements} elements, ${length} characters`);
      if (process.env.MIDTURN_BENCH_TEXT) console.log(shown);
    }, (page) => text && says_at_once(page, text)),
  );
}

const wanted = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const isWanted = (what) => wanted.length === 0 || wanted.some((word) => what.includes(word));
console.log('| what | here |\n| --- | --- |');
for (const events of [10_000, 100_000]) if (isWanted(`opening ${events}`)) await opening(events);
for (const one of ATTACKS.filter(([what]) => isWanted(`attack ${what}`))) {
  await attack(one).catch((error) => row(one[0], `FAILED: ${String(error).slice(0, 300)}`));
}
