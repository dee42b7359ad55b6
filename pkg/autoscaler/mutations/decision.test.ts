import { expect, test } from '@jest/globals';

import { describeMutated } from './decision.ts';

test.each([
  { mutated: { before: 3, after: 3, machines: [] }, want: 'size remains 3' },
  { mutated: { before: 3, after: 1, machines: ['a', 'b'] }, want: 'size 3 -> 1, without a, b' },
])('what was done is told: $want', ({ mutated, want }) => {
  expect(describeMutated(mutated)).toBe(want);
});
