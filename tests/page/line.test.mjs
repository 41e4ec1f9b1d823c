// The line to the daemon: lost, cut, told to begin anew, signed out; and who is refused on it.

import assert from 'node:assert/strict';
import { createServer, request } from 'node:http';
import test from 'node:test';

import { Ground, lead, looking, shown, until } from './ground.mjs';

const WORDS = 'The parser reads one word after the other and never looks back. '.repeat(4).trim();
const heard = (...texts) => texts.map((text) => `      - {takes: 200ms, text: "${text}"}\n`).join('');
const TALKS = lead(`      - text: A command.\n        tools:\n          - {id: b1, name: bash, input: {command: echo printed}}\n${heard('One.', 'Two.', 'Three.', 'Four.')}`);

const log = (page) => page.getByRole('log');
const composer = (page) => page.getByRole('textbox', { name: 'Message to lead' });
const says = (page, text) => log(page).getByText(text, { exact: true }).waitFor();
const status = (page, text) => page.getByRole('status').filter({ hasText: text }).waitFor({ state: 'attached' });

/** All events of a session. */
const recorded = async (ground, session) => (await ground.ask('GET', `sessions/${session}/log?limit=1000`)).events;

/** An event as the stream has it. */
const frame = (event) => `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

/** The rows of the conversation are those of a page that has seen nothing else, and each reply is there once. */
async function isWhole({ page, context, ground, session }) {
  const fresh = await context.newPage();
  await fresh.goto(page.url());
  const events = await recorded(ground, session);
  const replies = events.filter(({ type, text }) => type === 'model_finished' && text !== '').map(({ text }) => text);
  await says(fresh, replies.at(-1));
  const rows = (one) => log(one).locator('.reply, .letter, .call, .line, .thinking').allInnerTexts();
  await until('both pages show the same', async () => JSON.stringify(await rows(page)) === JSON.stringify(await rows(fresh)));
  assert.deepEqual((await log(page).locator('.reply').allInnerTexts()).map((text) => text.trim()), replies);
  await fresh.close();
}

/** Answers the page's next requests for the stream with these bodies, then lets them through. Where each began is told. */
async function streams(page, ...bodies) {
  const begun = [];
  await page.route('**/events?**', (route) => {
    begun.push(Number(new URL(route.request().url()).searchParams.get('after')));
    const body = bodies.shift();
    return body === undefined ? route.continue() : route.fulfill({ contentType: 'text/event-stream', body });
  });
  return begun;
}

test('a stream that is cut goes on behind the last event: nothing is missing, and nothing comes twice', () =>
  shown(TALKS, async (all) => {
    const { page, ground, session } = all;
    await says(page, 'One.');
    const events = await recorded(ground, session);
    const some = events.slice(0, 6).map(frame).join('');
    // Cut in the middle of an event; then once more, behind one that was told before.
    const half = frame(events[6]).slice(0, -20);
    const begun = await streams(page, some + half, events.slice(4, 8).map(frame).join(''));
    await page.reload();
    await says(page, 'One.');
    await until('it follows again', () => begun.length >= 3);
    assert.deepEqual(begun.slice(0, 3), [0, 6, 8]);
    await composer(page).fill('Go on.');
    await composer(page).press('Enter');
    await says(page, 'Two.');
    await isWhole(all);
  }));

test('a page that is told to begin anew does, and what the store never had is gone', () =>
  shown(TALKS, async (all) => {
    const { page, ground, session } = all;
    await says(page, 'One.');
    const events = await recorded(ground, session);
    const never = { ...events.findLast(({ type }) => type === 'model_finished'), seq: events.length + 1, run: 2, text: 'Never said.' };
    const began = { ...events.find(({ type }) => type === 'run_started'), seq: events.length + 1, run: 2, trigger: [] };
    const resync = `event: resync\ndata: ${JSON.stringify({ last: events.length })}\n\n`;
    const told = [...events, began, { ...never, seq: began.seq + 1 }].map(frame).join('');
    // It is slower than the server has patience, first; then it knows of more than there is.
    const begun = await streams(page, events.slice(0, 3).map(frame).join('') + resync, told.slice(told.indexOf('id: 4\n')), resync);
    await page.reload();
    await until('it has begun anew', () => begun.length >= 4);
    assert.deepEqual(begun.slice(0, 4), [0, 3, events.length + 2, 0]);
    await says(page, 'One.');
    await log(page).getByText('Never said.').waitFor({ state: 'detached' });
    await isWhole(all);
  }));

/** What stands between a browser and the daemon: a line that can be cut, and is there again. */
class Line {
  isCut = false;
  #sockets = new Set();
  #server = createServer((asked, answer) => {
    if (this.isCut) return answer.destroy();
    const { hostname, port, pathname, search } = new URL(asked.url);
    const on = request({ hostname, port, path: pathname + search, method: asked.method, headers: asked.headers }, (answered) => {
      answer.writeHead(answered.statusCode, answered.headers);
      answered.pipe(answer);
    });
    on.on('error', () => answer.destroy());
    answer.on('close', () => on.destroy());
    asked.pipe(on);
  }).on('connection', (socket) => this.#sockets.add(socket));

  /** What a browser is told of it. */
  async proxy() {
    await new Promise((ready) => this.#server.listen(0, '127.0.0.1', () => ready(undefined)));
    return { server: `http://127.0.0.1:${this.#server.address().port}`, bypass: '<-loopback>' };
  }

  cut() {
    this.isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  end() {
    this.cut();
    this.#server.close();
  }
}

test('a connection that is lost while a reply streams is said, and the reply is whole once it is back', async () => {
  const line = new Line();
  const settings = { proxy: await line.proxy() };
  const scenario = lead(`      - {takes: 10s, text: "${WORDS}"}\n${heard('Heard.')}`);
  try {
    await shown(scenario, async (all) => {
      const { page, ground, session } = all;
      await log(page).locator('.reply.streaming').getByText('The parser').waitFor();
      await composer(page).fill('half a thought');
      line.cut();
      await page.getByText(/^The connection is lost\. Trying again .*; what you type is kept\.$/).waitFor();
      await status(page, 'The connection is lost');
      await composer(page).press('Enter');
      await page.locator('.refused').getByText('nothing is lost here, try again').waitFor();
      assert.equal(await composer(page).inputValue(), 'half a thought');
      line.isCut = false;
      await status(page, 'Connected again');
      // What was said meanwhile comes in one piece, and what was there is not said again.
      await until('the reply is whole', async () => {
        const text = (await log(page).locator('.reply').innerText()).trim();
        assert.ok(WORDS.startsWith(text), text);
        return text === WORDS;
      });
      assert.equal(await composer(page).inputValue(), 'half a thought');
      await isWhole(all);
      assert.deepEqual(await ground.events(session, 'message_queued'), []);
    }, settings);
  } finally {
    line.end();
  }
});

test('a daemon that is killed is missed, a sign-in that is over says how to get in, and tabs and drafts come back', async () => {
  const ground = new Ground();
  const scenario = lead(`      - text: A command.\n        tools:\n          - {id: b1, name: bash, input: {command: "until [ -e go ]; do sleep 0.05; done"}}\n${heard('One.', 'Two.')}`);
  try {
    await ground.serve(scenario);
    const session = await ground.begin();
    await looking(async (page, context) => {
      await page.goto(ground.link(session));
      await log(page).getByText('running').waitFor();
      await composer(page).fill('half a thought');
      const gone = new Promise((done) => ground.daemon.once('exit', done));
      ground.daemon.kill('SIGKILL');
      await gone;
      await page.getByText('The connection is lost').first().waitFor();
      await composer(page).pressSequentially(' and more');
      await ground.serve(scenario);
      // The next process listens at the same port, and knows nothing of the token of the one before.
      const link = ground.link(session);
      await page.getByText('This sign-in is over: the process that gave it has ended').first().waitFor();
      await page.getByText('midturn open').waitFor();
      assert.equal(await composer(page).count(), 0);
      const second = await context.newPage();
      await second.goto(link);
      // One tab signs in, all are in.
      await composer(page).waitFor();
      assert.equal(await composer(page).inputValue(), 'half a thought and more');
      await second.close();
      ground.write('go');
      await says(page, 'One.');
      await isWhole({ page, context, ground, session });
    });
  } finally {
    await ground.end();
  }
});

/** Asks with these headers, as no browser would let a page do. */
function asks(port, path, headers) {
  return new Promise((done, failed) => {
    request({ port, path, headers: { host: `127.0.0.1:${port}`, ...headers } }, async (response) => {
      let body = '';
      for await (const piece of response) body += piece;
      done({ status: response.statusCode, body });
    }).on('error', failed).end();
  });
}

test('another origin, a wrong host and a frame are refused with the reason, and another port sees no credential', () =>
  shown(TALKS, async ({ page, context }) => {
    await says(page, 'One.');
    const { origin, port } = new URL(page.url());
    const refusals = [
      [403, 'wrong_origin', await asks(port, '/v1/sessions', { origin: 'http://evil.example' })],
      [421, 'wrong_host', await asks(port, '/', { host: `evil.example:${port}` })],
      [401, 'no_token', await asks(port, '/v1/sessions', {})],
    ];
    for (const [status, code, answer] of refusals) {
      const problem = JSON.parse(answer.body);
      assert.deepEqual([answer.status, problem.code], [status, code]);
      assert.ok(problem.detail.length > 20, `it says why: ${answer.body}`);
    }
    /** What a server that an agent has started would be sent. */
    const headers = [];
    const other = createServer((request, response) => {
      headers.push(request.headers);
      response.setHeader('Content-Type', 'text/html');
      response.end(`<!doctype html><title>Other</title><iframe src="${origin}/"></iframe>`);
    });
    await new Promise((ready) => other.listen(0, '127.0.0.1', () => ready(undefined)));
    try {
      const stranger = await context.newPage();
      const refused = stranger.waitForEvent('console', (message) => /frame-ancestors/.test(message.text()));
      await stranger.goto(`http://127.0.0.1:${other.address().port}/`);
      await refused;
      const framed = stranger.frames().at(-1);
      assert.equal(await framed.getByText('Midturn').count(), 0);
      const read = await stranger.evaluate((url) => fetch(url).then((answer) => answer.status, (error) => String(error)), `${origin}/v1/sessions`);
      assert.match(String(read), /Failed to fetch/);
      assert.equal(await stranger.evaluate(() => localStorage.length), 0);
      for (const { authorization, cookie } of headers) assert.deepEqual([authorization, cookie], [undefined, undefined]);
    } finally {
      other.closeAllConnections();
      other.close();
    }
  }));
