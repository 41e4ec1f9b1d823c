// Pictures as files, each as a browser shows it: on its own, in a page as an image, and as a part of a page.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { looking } from './ground.mjs';
import { AXE } from './whole.mjs';

const SCENARIOS = fileURLToPath(new URL('../../scenarios', import.meta.url));

/** What the guidelines ask of text. */
const CONTRAST = 4.5;

/** Every nth picture is looked at within a page, too. */
const NTH = 8;

/** The pictures of all scenarios, as long as `look` looks. */
async function drawn(look) {
  const folder = mkdtempSync(join(tmpdir(), 'midturn-svg-'));
  try {
    execFileSync(process.env.MIDTURN_BIN ?? '', ['replay', '--svg', folder, SCENARIOS], { stdio: ['ignore', 'ignore', 'ignore'] });
    const all = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.svg')).sort();
    await look(all.map((name) => join(folder, name)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What axe, which is in the page, finds there. */
async function violations(page, rules = {}) {
  const { violations, passes } = await page.evaluate((rules) => globalThis.axe.run(document, { resultTypes: ['violations'], rules }), rules);
  assert.ok(passes.length > 0, 'axe found nothing to look at');
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' ')}`);
}

/** The page's document becomes this one, and axe stays in the page: to load it 266 times takes a minute longer. */
function becomes(/** @type {string} */ svg) {
  const { documentElement } = new DOMParser().parseFromString(svg, 'image/svg+xml');
  document.replaceChild(document.adoptNode(documentElement), document.documentElement);
}

/** In the browser: texts that can't be read on what they stand on, that leave the picture, or stand on each other. */
function unreadable(least) {
  const root = document.documentElement;
  const style = (/** @type {Element} */ one) => getComputedStyle(one);
  const light = (/** @type {string} */ colour) => {
    const linear = (/** @type {number} */ part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    const [red, green, blue] = (colour.match(/[\d.]+/g) ?? []).map((part) => linear(Number(part) / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (/** @type {string} */ one, /** @type {string} */ other) => {
    const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  };
  /** What is painted below a text at this place. */
  const below = (/** @type {number} */ x, /** @type {number} */ y) => {
    const filled = (/** @type {Element} */ one) => one instanceof SVGGeometryElement && style(one).fill !== 'none' && one.isPointInFill(new DOMPoint(x, y));
    const one = [...root.querySelectorAll('rect, path, circle')].filter((one) => !one.closest('defs') && filled(one)).pop();
    const { fill } = one ? style(one) : { fill: 'rgb(255, 255, 255)' };
    return fill.startsWith('url') ? [style(root.querySelector('.paper')).fill, style(root.querySelector('.hatched')).stroke] : [fill];
  };
  const found = [];
  const texts = [...root.querySelectorAll('text')].map((one) => ({ one, box: one.getBBox(), says: one.textContent }));
  const { width, height } = root.viewBox.baseVal;
  for (const [nth, { one, box, says }] of texts.entries()) {
    const right = box.x + box.width;
    if (box.x < 0 || box.y < 0 || right > width || box.y + box.height > height) found.push(`${says} leaves the picture`);
    if (Number.parseFloat(style(one).fontSize) < 12) found.push(`${says} is small`);
    for (const x of [box.x + 1, box.x + box.width / 2, right - 1]) {
      for (const fill of below(x, box.y + box.height / 2)) {
        const has = contrast(style(one).fill, fill);
        if (has < least) found.push(`${says}: ${has.toFixed(2)} on ${fill}`);
      }
    }
    for (const other of texts.slice(nth + 1)) {
      const apart = right <= other.box.x || other.box.x + other.box.width <= box.x || box.y + 12 <= other.box.y || other.box.y + 12 <= box.y;
      if (!apart) found.push(`${says} stands on ${other.says}`);
    }
  }
  return found;
}

// > D16: Every picture that is written has a name and a description, passes axe, and its texts can be read, light and dark
test('every picture of a scenario passes axe as a file, and all that it says can be read, light and dark', () =>
  drawn((files) =>
    looking(async (page) => {
      assert.ok(files.length > 200, `${files.length} pictures`);
      await page.goto(pathToFileURL(files[0]).href);
      await page.evaluate(AXE);
      for (const file of files) {
        await page.evaluate(becomes, readFileSync(file, 'utf8'));
        // Of a picture on its own axe can't tell contrasts: they are looked at below.
        assert.deepEqual(await violations(page, { 'color-contrast': { enabled: false } }), [], file);
        const [name, told] = await page.evaluate(() => ['title', 'told'].map((id) => document.getElementById(id)?.textContent));
        assert.ok(name && told && /^\d+ lanes?, /.test(told), `${file}: ${name}, ${told}`);
        for (const colorScheme of ['light', 'dark']) {
          await page.emulateMedia({ colorScheme });
          assert.deepEqual(await page.evaluate(unreadable, CONTRAST), [], `${file}, ${colorScheme}`);
        }
      }
    })));

// > D16: Every picture that is written has a name and a description, passes axe, and its texts can be read, light and dark
test('a picture passes axe as an image of a page and as a part of one', () =>
  drawn((files) =>
    looking(async (page) => {
      for (const file of files.filter((_, nth) => nth % NTH === 0)) {
        const svg = readFileSync(file, 'utf8');
        // As README.md shows it, and as a page has it that takes it in whole.
        for (const shown of [`<img alt="Timeline" src="data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}">`, svg]) {
          await page.goto('about:blank');
          await page.setContent(`<!doctype html><html lang="en"><title>A page</title><main><h1>A page</h1>${shown}</main></html>`);
          const size = await page.evaluate(() => document.querySelector('img, svg')?.getBoundingClientRect().width);
          assert.ok(size > 600, `${file}: ${size}`);
          await page.evaluate(AXE);
          assert.deepEqual(await violations(page), [], file);
        }
      }
    })));
