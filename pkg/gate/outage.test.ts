import { expect, test } from '@jest/globals';

import { describeLength } from './outage.ts';

test.each([
  { ms: 0, want: '0 s' },
  { ms: 59_400, want: '59 s' },
  { ms: 59_500, want: '1 min 0 s' },
  { ms: 725_000, want: '12 min 5 s' },
  { ms: 3 * 3_600_000 + 120_000, want: '3 h 2 min' },
])('$ms ms are told as $want', ({ ms, want }) => {
  expect(describeLength(ms)).toBe(want);
});
