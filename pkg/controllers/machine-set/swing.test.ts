import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { Swings } from './replica-plans.ts';

/** For how long the surplus is kept after each change: seconds since the one before, the new size. */
const waits = (changes: readonly (readonly [afterS: number, size: number])[]): number[] => {
  const clock = new FakeClock();
  const swings = new Swings({ clock });
  return changes.map(([afterS, size]) => {
    clock.advance(afterS * 1000);
    return swings.see('s', size) / 1000;
  });
};

test.each([
  {
    what: 'a fall alone',
    changes: [
      [0, 50],
      [0, 20],
    ],
    want: [0, 0],
  },
  {
    what: 'a fall right after a rise',
    changes: [
      [0, 5],
      [9, 50],
      [3, 20],
    ],
    want: [0, 0, 5],
  },
  {
    what: 'what is left of it',
    changes: [
      [0, 5],
      [9, 50],
      [3, 20],
      [2, 20],
      [3, 20],
    ],
    want: [0, 0, 5, 3, 0],
  },
  {
    what: 'a fall some time after a rise',
    changes: [
      [0, 5],
      [9, 50],
      [5, 20],
    ],
    want: [0, 0, 0],
  },
  {
    what: 'a fall while it swings',
    changes: [
      [0, 5],
      [9, 50],
      [3, 20],
      [4, 10],
    ],
    want: [0, 0, 5, 5],
  },
  {
    what: 'a rise',
    changes: [
      [0, 5],
      [9, 50],
      [3, 20],
      [3, 60],
      [3, 10],
    ],
    want: [0, 0, 5, 2, 5],
  },
  {
    what: 'a fall to none',
    changes: [
      [0, 5],
      [9, 50],
      [3, 0],
    ],
    want: [0, 0, 0],
  },
] as const)('$what: the surplus is kept for $want s', ({ changes, want }) => {
  expect(waits(changes)).toEqual(want);
});
