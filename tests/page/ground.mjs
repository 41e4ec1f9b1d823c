// A project with scripted agents, a daemon that carries it, and a browser that looks at it.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after } from 'node:test';

import { chromium } from 'playwright-core';

const BIN = process.env.MIDTURN_BIN ?? '';
const CHROMIUM = process.env.MIDTURN_CHROMIUM ?? '/usr/bin/chromium';

/** By hand, to find what a test does before the page can: so many times slower is the page, and so many ms later each answer. */
const SLOWER = Number(process.env.MIDTURN_PAGE_SLOWER ?? 1);
const LATER = Number(process.env.MIDTURN_PAGE_LATER ?? 0);

/** So long is waited for what has to come. */
export const PATIENCE = 30_000;

/** Waits until this holds. */
export async function until(what, holds, patience = PATIENCE) {
  const end = Date.now() + patience;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `never: ${what}`);
    await new Promise((next) => setTimeout(next, 50));
  }
}

/** The lead of a scenario, with these replies of its model (YAML, a list). */
export function lead(replies) {
  return `midturn: 1\nname: page\nagents:\n  - name: lead\n    role: lead\n    model:\n${replies}`;
}

/** A project folder with homes of its own, and what runs in it. */
export class Ground {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'midturn-page-'));
    for (const below of ['project', 'home', 'config', 'state']) mkdirSync(this.path(below));
    this.git('init', '--quiet', '--initial-branch', 'main');
    this.git('-c', 'user.name=Page', '-c', 'user.email=page@example.org', 'commit', '--quiet', '--allow-empty', '-m', 'begun');
    /** @type {import('node:child_process').ChildProcess | undefined} */
    this.daemon = undefined;
  }

  path(/** @type {string} */ below) {
    return join(this.folder, below);
  }

  environment() {
    const { PATH } = process.env;
    return {
      PATH,
      HOME: this.path('home'),
      XDG_CONFIG_HOME: this.path('config'),
      XDG_STATE_HOME: this.path('state'),
    };
  }

  git(/** @type {string[]} */ ...words) {
    execFileSync('git', words, { cwd: this.path('project'), env: this.environment() });
  }

  /** What `midturn` with these words prints. */
  says(/** @type {string[]} */ ...words) {
    return execFileSync(BIN, words, { cwd: this.path('project'), env: this.environment(), encoding: 'utf8' });
  }

  /** Writes a file into the project: what a command of an agent waits for. */
  write(/** @type {string} */ name, text = '') {
    const path = join(this.path('project'), name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  /** Starts a daemon whose sessions have this scenario's models, and waits until it answers. */
  async serve(/** @type {string} */ scenario, /** @type {string[]} */ ...more) {
    writeFileSync(this.path('scenario.yaml'), scenario);
    const words = ['serve', '--no-sandbox', '--model', 'scripted:../scenario.yaml', ...more];
    const daemon = spawn(BIN, words, { cwd: this.path('project'), env: this.environment() });
    this.daemon = daemon;
    await new Promise((ready, failed) => {
      let said = '';
      const hear = (/** @type {Buffer} */ bytes) => {
        said += bytes;
        if (said.includes('ready')) ready(undefined);
      };
      daemon.stdout.on('data', hear);
      daemon.stderr.on('data', hear);
      daemon.on('exit', (status) => failed(new Error(`the daemon ended with ${status}: ${said}`)));
    });
  }

  /** Asks the daemon, as a program on this machine does. */
  async ask(/** @type {string} */ method, /** @type {string} */ path, /** @type {unknown} */ body = undefined) {
    const projects = this.path('state/midturn/projects');
    const [key] = execFileSync('ls', [projects], { encoding: 'utf8' }).trim().split('\n');
    const { socket, token } = JSON.parse(readFileSync(join(projects, key, 'interface.json'), 'utf8'));
    const words = ['--silent', '--unix-socket', socket, '--request', method, '--header', `Authorization: Bearer ${token}`];
    if (body !== undefined) words.push('--header', 'Content-Type: application/json', '--data', JSON.stringify(body));
    return JSON.parse(execFileSync('curl', [...words, `http://midturn/v1/${path}`], { encoding: 'utf8' }));
  }

  /** Begins a session, and says its id. */
  async begin(task = 'Go.', { answers = false } = {}) {
    const { session } = await this.ask('POST', 'sessions', { task, answers });
    assert.ok(session, 'no session was begun');
    return session;
  }

  /** The events of a session of this type. */
  async events(/** @type {string} */ session, /** @type {string} */ type) {
    const { events } = await this.ask('GET', `sessions/${session}/log?limit=1000`);
    return events.filter((/** @type {{type: string}} */ event) => event.type === type);
  }

  /** A link that lets one page in. */
  link(session = '') {
    return this.says('open', '--print', ...(session ? [session] : [])).split('\n')[0];
  }

  /** The daemon ends as in a crash. */
  async kill() {
    await this.ended('SIGKILL');
  }

  async ended(/** @type {NodeJS.Signals} */ signal) {
    const { daemon } = this;
    this.daemon = undefined;
    if (!daemon || daemon.exitCode !== null) return;
    const gone = new Promise((done) => daemon.once('exit', done));
    daemon.kill(signal);
    await gone;
  }

  async end() {
    await this.ended('SIGTERM');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/**
 * Answers the page's next request of this kind by hand; those after it reach the server. The route stays where it is: one that goes
 * with its only request switches the browser's interception off while the answer is still on its way.
 */
export async function once(page, pattern, answer) {
  let isAnswered = false;
  await page.route(pattern, (route) => {
    if (isAnswered) return route.fallback();
    isAnswered = true;
    return answer(route);
  });
  await intercepted(page);
}

/**
 * Waits until the page's requests are intercepted: Chromium says so before the page's own process does, and a key that is pressed
 * at once is faster.
 */
export async function intercepted(page) {
  await page.route('**/intercepted', (route) => route.fulfill({ status: 204 }));
  await until('requests are intercepted', () => page.evaluate(async () => (await fetch('intercepted')).status === 204));
}

/** What a page shows, for the report of a test that waited for something else. */
async function seen(page) {
  const words = await page.evaluate(() => document.body.innerText).catch((error) => String(error));
  return `the page ${page.url()} showed:\n${words.slice(0, 4000)}`;
}

/**
 * Starts a browser for all tests of a file, with the first of them, and ends it behind the last. Who is no test (bench.mjs) has
 * nothing that comes last.
 */
export function shared(launch) {
  // A browser that dies as it starts says nothing of the page: it is started once more.
  const start = () => launch().catch((/** @type {Error} */ error) => {
    console.error(`the browser died as it started; once more. It said: ${error.message}`);
    return launch();
  });
  if (process.env.NODE_TEST_CONTEXT === undefined) {
    return async () => {
      const browser = await start();
      return { browser, leave: () => browser.close() };
    };
  }
  /** @type {ReturnType<typeof launch> | undefined} */
  let started;
  after(async () => (await started)?.close());
  return async () => ({ browser: await (started ??= start()), leave: async () => {} });
}

const inChromium = shared(() => chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] }));

/** A page in a window of its own, as long as `look` looks. What the page throws or its policy refuses is an error. */
export async function looking(look, settings = {}, opened = inChromium) {
  const { browser, leave } = await opened();
  try {
    await lookingFrom(await browser.newContext({ viewport: { width: 1280, height: 800 }, ...settings }), look);
  } finally {
    await leave();
  }
}

/** Chromium slows its pages itself; what can't be slowed, as Firefox, goes as it goes. */
async function slowed(page) {
  const client = await page.context().newCDPSession(page).catch(() => undefined);
  await client?.send('Emulation.setCPUThrottlingRate', { rate: SLOWER });
  await client?.send('Network.emulateNetworkConditions', { offline: false, latency: LATER, downloadThroughput: -1, uploadThroughput: -1 });
}

async function lookingFrom(context, look) {
  try {
    context.setDefaultTimeout(PATIENCE);
    if (SLOWER > 1 || LATER > 0) context.on('page', slowed);
    const page = await context.newPage();
    /** @type {string[]} */
    const complaints = [];
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error' && message.text().includes('Content Security Policy')) complaints.push(message.text());
    });
    try {
      await look(page, context);
    } catch (error) {
      console.error(await seen(page));
      throw error;
    }
    assert.deepEqual(complaints, []);
  } finally {
    // What is on its way through a test's own hands when the window goes is no fault.
    for (const page of context.pages()) await page.unrouteAll({ behavior: 'ignoreErrors' });
    await context.close();
  }
}

/** A ground with a daemon, started with these words, a session and a page that shows it. */
export async function shown(scenario, look, { words = [], ...settings } = {}, looks = looking) {
  const ground = new Ground();
  try {
    await ground.serve(scenario, ...words);
    const session = await ground.begin();
    await looks(async (page, context) => {
      await page.goto(ground.link(session));
      await look({ ground, session, page, context });
    }, settings);
  } finally {
    await ground.end();
  }
}
