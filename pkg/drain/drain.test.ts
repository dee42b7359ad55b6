import { expect, test } from '@jest/globals';

import { effectiveEvictRetries } from './drain.ts';

test.each([
  { max: 360, timeoutMs: 7_200_000, want: 360 },
  { max: 1000, timeoutMs: 7_200_000, want: 360 },
  { max: 3, timeoutMs: 7_200_000, want: 3 },
  { max: 360, timeoutMs: 19_000, want: 0 },
  { max: 0, timeoutMs: 7_200_000, want: 0 },
  { max: -1, timeoutMs: 7_200_000, want: 0 },
])('$max retries in $timeoutMs ms are $want', ({ max, timeoutMs, want }) => {
  expect(effectiveEvictRetries(max, timeoutMs)).toBe(want);
});
