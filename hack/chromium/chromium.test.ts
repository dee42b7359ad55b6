import { expect, test } from '@jest/globals';

import { installedChromium } from './chromium.ts';

test.each([
  {
    what: 'the one that is named',
    env: { CHROMIUM: '/opt/c', PATH: '/usr/bin' },
    there: ['/usr/bin/chromium'],
    want: '/opt/c',
  },
  { what: 'that of Debian', env: { PATH: '/bin:/usr/bin' }, there: ['/usr/bin/chromium'], want: '/usr/bin/chromium' },
  {
    what: 'Chromium before Chrome, wherever they are',
    env: { CHROMIUM: '', PATH: '/bin:/usr/bin' },
    there: ['/bin/google-chrome', '/usr/bin/chromium-browser'],
    want: '/usr/bin/chromium-browser',
  },
  { what: 'none', env: {}, there: ['chromium'], want: undefined },
])('the Chromium of tests is $what', ({ env, there, want }) => {
  expect(installedChromium(env, (path) => there.includes(path))).toBe(want);
});
