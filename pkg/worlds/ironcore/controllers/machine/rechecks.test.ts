import { expect, test } from '@jest/globals';

import { Rechecks } from './rechecks.ts';

test('a Machine whose runtime is not believed is looked at ever less often, but when the doubt ends', () => {
  const rechecks = new Rechecks();
  const often = [1, 2, 3, 4, 5, 6].map(() => rechecks.hold('a'));

  expect(often).toEqual([5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
  expect(rechecks.hold('a', 1_500)).toBe(1_500);
  expect([rechecks.release('a'), rechecks.release('a'), rechecks.hold('a')]).toEqual([true, false, 5_000]);
});
