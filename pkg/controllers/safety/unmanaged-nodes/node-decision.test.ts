import { expect, test } from '@jest/globals';

import { decideOnNode } from './node-decision.ts';

const NODE = { machines: 0, isLeftOver: false, isMarked: false, hasFinalizer: false, unownedForMs: 0 };

test.each([
  { facts: { machines: 1 }, want: 'leave' },
  { facts: { machines: 1, isMarked: true }, want: 'unmark' },
  { facts: { machines: 2, isLeftOver: true }, want: 'leave' },
  { facts: { isLeftOver: true }, want: 'remove' },
  { facts: { unownedForMs: 400 }, want: { waitMs: 600 } },
  { facts: { unownedForMs: 1_000 }, want: 'mark' },
  { facts: { unownedForMs: 1_000, isMarked: true }, want: 'leave' },
  { facts: { unownedForMs: 1_000, isMarked: true, hasFinalizer: true }, want: 'mark' },
])('a Node with $facts: $want', ({ facts, want }) => {
  expect(decideOnNode({ ...NODE, ...facts }, 1_000)).toEqual(want);
});
