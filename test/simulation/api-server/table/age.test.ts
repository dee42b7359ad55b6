import { expect, test } from '@jest/globals';

import { shownAge } from './age.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

test.each([
  { ms: -3 * SECOND, shown: '<invalid>' },
  { ms: -1 * SECOND, shown: '0s' },
  { ms: 999, shown: '0s' },
  { ms: 119 * SECOND, shown: '119s' },
  { ms: 2 * MINUTE, shown: '2m' },
  { ms: 9 * MINUTE + 59 * SECOND, shown: '9m59s' },
  { ms: 10 * MINUTE + 59 * SECOND, shown: '10m' },
  { ms: 179 * MINUTE, shown: '179m' },
  { ms: 3 * HOUR, shown: '3h' },
  { ms: 7 * HOUR + 59 * MINUTE, shown: '7h59m' },
  { ms: 47 * HOUR, shown: '47h' },
  { ms: 2 * DAY, shown: '2d' },
  { ms: 7 * DAY + 23 * HOUR, shown: '7d23h' },
  { ms: 729 * DAY, shown: '729d' },
  { ms: 730 * DAY, shown: '2y' },
  { ms: 7 * 365 * DAY + 5 * DAY, shown: '7y5d' },
  { ms: 8 * 365 * DAY + 5 * DAY, shown: '8y' },
])('an age of $ms ms is shown as $shown', ({ ms, shown }) => {
  expect(shownAge(ms)).toBe(shown);
});
