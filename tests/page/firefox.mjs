// Debian's Firefox, driven by WebDriver BiDi.

import { firefox } from 'playwright-bidi';

import { looking, shared, shown } from './ground.mjs';

const FIREFOX = process.env.MIDTURN_FIREFOX ?? '/usr/bin/firefox-esr';

/**
 * One for all tests of a file. `playwright-bidi` is playwright-core 1.63, the last that asks of a Firefox which is not playwright's own
 * nothing that Firefox 153 can't do. `dark` is what its system prefers.
 */
const inFirefox = (dark) =>
  shared(() =>
    firefox.launch({
      channel: 'moz-firefox',
      executablePath: FIREFOX,
      firefoxUserPrefs: { 'layout.css.prefers-color-scheme.content-override': dark ? 0 : 1 },
    }),
  );
const [LIGHT, DARK] = [inFirefox(false), inFirefox(true)];

/** As `looking`, in Firefox, which tells of what a policy refused only in the page. */
export const lookingInFirefox = (look, { colorScheme, ...settings } = {}) =>
  looking(
    async (page, context) => {
      await context.addInitScript(() => {
        document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
          console.error(`Content Security Policy: ${violatedDirective} refused ${blockedURI}`),
        );
      });
      await look(page, context);
    },
    settings,
    colorScheme === 'dark' ? DARK : LIGHT,
  );

/** As `shown`, in Firefox. */
export const shownInFirefox = (scenario, look, settings = {}) => shown(scenario, look, settings, lookingInFirefox);
