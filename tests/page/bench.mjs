// How long the page takes, by hand: `MIDTURN_BIN=$PWD/target/debug/midturn node tests/page/bench.mjs`. Words after it, as
// "attack 10 MiB", name what is measured.

import { IDLE, LIST, MIB, busy, furnish, heap, replies, says, saysAtOnce } from './busy.mjs';
import { Ground, lead, looking, until } from './ground.mjs';

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
  await session(busy({ events, seconds: 200 }), async (ground, id) => {
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

/** How long frames take in which one looks nearer and farther by Ctrl and the wheel, at all of a timeline. */
function zooms() {
  const box = document.getElementById('chart');
  const { left, top } = box.getBoundingClientRect();
  const wheel = (deltaY) => box.dispatchEvent(new WheelEvent('wheel', { ctrlKey: true, deltaY, clientX: left + 500, clientY: top + 100, cancelable: true }));
  // From the browser's beginning of the frame to its end, with layout and paint.
  const frame = (deltaY) => new Promise((done) => {
    wheel(deltaY);
    requestAnimationFrame((begun) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => done(performance.now() - begun);
      port2.postMessage(0);
    });
  });
  return [...Array(40).fill(-40), ...Array(80).fill(40), ...Array(80).fill(-40)].reduce(
    async (all, deltaY) => [...(await all), await frame(deltaY)],
    Promise.resolve([]),
  );
}

async function timeline(events) {
  await session(busy({ events, seconds: 200 }), async (ground, id) => {
    await until(`${events} events`, () => says(ground, id, events), 600_000);
    await page(ground, id, async (page) => {
      await page.locator('.reply.streaming').waitFor();
      await page.getByRole('tab', { name: 'Timeline' }).click();
      await page.locator('.chart .item').first().waitFor();
      const all = (await page.evaluate(zooms)).sort((one, other) => one - other);
      row(`the timeline of ${events} events: a frame while zooming, p50, p95, most`, [0.5, 0.95, 1].map((share) => `${at(all, share).toFixed(1)} ms`).join(', '));
      row('… elements', await page.evaluate(() => document.querySelectorAll('*').length));
    });
  });
}

const reply = (text, takes = '2s') => lead(`      - {takes: 3s, text: "One."}\n`).replace('{takes: 3s, text: "One."}', JSON.stringify({ takes, text }));
const call = (command) => reply('').replace('"text":""', `"text":"One.","tools":[${JSON.stringify({ id: 'b1', name: 'bash', input: { command } })}]`);

/** What is too much, and a scenario that says it, or the text of a reply in its stream. */
const ATTACKS = [
  ['10 MiB of output, printed', call("yes 'a line of output, and another one' | head -c 10485760")],
  ['10 MiB of output in one line', call("head -c 10485760 /dev/zero | tr '\\\\0' x")],
  ['3 MiB of markdown', reply(LIST.repeat((3 * MIB) / LIST.length))],
  ['10 MiB of markdown', IDLE, LIST.repeat((10 * MIB) / LIST.length)],
  ['3,000 nested >', reply(`${'>'.repeat(3000)} deep`)],
  ['30,000 characters of nested >', reply(`${'> '.repeat(15_000)}deep`)],
  ['30,000 characters of **', reply('**a '.repeat(7_500))],
  ['30,000 characters of [', reply('['.repeat(30_000))],
  ['30,000 characters of a table', reply(`|a|b|\n|-|-|\n${'|c|d|\n'.repeat(5_000)}`)],
  ['one line of 3 MiB', reply('x'.repeat(3 * MIB))],
  ['one line of 15 MiB', IDLE, 'x'.repeat(15 * MIB)],
  ['one line of 17 MiB', IDLE, 'x'.repeat(17 * MIB)],
  ['60 replies of 30,000 characters of *', replies('*a* '.repeat(7_500), 60)],
  ['300 replies of 4,000 characters', replies(LIST.repeat(4_000 / LIST.length), 300)],
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
    }, (page) => text && saysAtOnce(page, text)),
  );
}

const wanted = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const isWanted = (what) => wanted.length === 0 || wanted.some((word) => what.includes(word));
console.log('| what | here |\n| --- | --- |');
// A scenario holds no more; of more events a page asks for 20,000, too.
for (const events of [10_000, 50_000]) if (isWanted(`opening ${events}`)) await opening(events);
if (isWanted('timeline')) await timeline(10_000);
for (const one of ATTACKS.filter(([what]) => isWanted(`attack ${what}`))) {
  await attack(one).catch((error) => row(one[0], `FAILED: ${String(error).slice(0, 300)}`));
}
