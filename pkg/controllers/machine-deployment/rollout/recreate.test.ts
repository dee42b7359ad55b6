import { expect, test } from '@jest/globals';

import { recreateStep } from './rollout.ts';
import { EMPTY_SET } from '../sets/set-facts.ts';

test.each([
  {
    title: 'empties old sets',
    old: [{ size: 2, existing: 2 }],
    want: { kind: 'shrink', sizes: new Map([['old-0', 0]]) },
  },
  { title: 'waits for the last old Machine', old: [{ size: 0, existing: 1 }], want: { kind: 'wait' } },
  { title: 'grows when none is left', old: [{ size: 0, existing: 0 }], want: { kind: 'grow' } },
])('a Recreate $title', ({ old, want }) => {
  expect(recreateStep(old.map((facts, i) => ({ ...EMPTY_SET, name: `old-${i}`, ...facts })))).toEqual(want);
});
