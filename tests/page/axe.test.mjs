// axe-core, with every rule on, in the states of the page: light and dark, wide and narrow.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import test from 'node:test';

import { lead, shown } from './ground.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const STREAMING = lead(
  '      - text: |\n          # A heading\n\n          A list:\n\n          - one `code`\n          - two\n' +
    '        tools:\n' +
    '          - {id: b1, name: bash, input: {command: "echo begun; until [ -e go ]; do sleep 0.05; done"}}\n' +
    '      - {takes: 60s, text: "The parser reads one word after the other and never looks back."}\n',
);

/** What axe finds. */
async function found(page) {
  // The page's own policy lets no foreign script in; the browser's protocol does.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}

for (const colorScheme of ['light', 'dark']) {
  for (const [width, height] of [[1280, 800], [360, 740]]) {
    test(`axe finds nothing in ${colorScheme} at ${width}`, () =>
      shown(
        STREAMING,
        async ({ page, ground }) => {
          const log = page.getByRole('log');
          await log.locator('pre.tail', { hasText: 'begun' }).waitFor();
          assert.deepEqual(await found(page), [], 'a command runs');
          ground.write('go');
          await log.getByText('The parser').waitFor();
          assert.deepEqual(await found(page), [], 'it streams');
          await page.getByRole('button', { name: 'Stop generating response' }).click();
          await log.getByText('Response interrupted').waitFor();
          assert.deepEqual(await found(page), [], 'it was stopped');
        },
        { colorScheme, viewport: { width, height } },
      ));
  }
}
