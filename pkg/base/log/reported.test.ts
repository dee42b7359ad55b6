import { expect, test } from '@jest/globals';

import { isReported } from './reported.ts';

test('of many attempts that fail the first, the third and each tenth are told', () => {
  const attempts = Array.from({ length: 31 }, (_, i) => i + 1);

  expect(attempts.filter(isReported)).toEqual([1, 3, 10, 20, 30]);
});
