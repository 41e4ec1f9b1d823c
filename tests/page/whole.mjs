// What the page has to be for everybody: axe-core, with every rule on, light and dark, wide and narrow. What is looked at is
// also what docs/page.md shows: with `MIDTURN_PICTURES=1` its pictures are drawn anew.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

export const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PICTURES = fileURLToPath(new URL('../../docs/pictures/', import.meta.url));

export const WIDE = { width: 1280, height: 800 };
export const NARROW = { width: 360, height: 740 };

/** What axe finds, and what doesn't fit into the width. */
export async function wrong(page) {
  // The page's own policy lets no foreign script in; the browser's protocol does.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  return wide > 0 ? [...found, `${wide} pixels too wide`] : found;
}

/** What a finger can't hit: less than 44 pixels, inline links and what is in a text apart. */
export function small(page) {
  return page.evaluate(() => {
    const all = [...document.querySelectorAll('button, select, summary, input, textarea')];
    const seen = all.filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.closest('[inert]'));
    const sized = seen.map((one) => ({ one, box: one.getBoundingClientRect() }));
    const tight = sized.filter(({ box }) => box.width > 0 && (box.width < 43.5 || box.height < 43.5));
    return tight.map(({ one, box }) => `${one.outerHTML.slice(0, 90)} is ${Math.round(box.width)} × ${Math.round(box.height)}`);
  });
}

/** Draws what docs/page.md shows, if that was asked for. */
export async function draws(page, name) {
  if (!process.env.MIDTURN_PICTURES) return;
  await page.mouse.move(0, 0);
  await page.screenshot({ path: `${PICTURES}page-${name.replaceAll(' ', '-')}.png` });
}

/** Looks at a state as everybody may see it; in docs/ it is drawn at one width and in one scheme: `wide dark`. */
export async function look(page, state, picture = '') {
  for (const [width, viewport] of [['wide', WIDE], ['narrow', NARROW]]) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      assert.deepEqual(await wrong(page), [], `${state}, ${colorScheme}, ${width}`);
      if (picture === `${width} ${colorScheme}`) await draws(page, state);
    }
    if (width === 'narrow') assert.deepEqual(await small(page), [], state);
  }
  await page.setViewportSize(WIDE);
}
