import { expect, test } from '@jest/globals';

import { didYouMean } from './did-you-mean.ts';

const MACHINES = ['workers-5d8f9-abcde', 'workers-5d8f9-fghij', 'gpu-7c6b5-klmno', 'x'];

test.each([
  { typed: 'workers-5d8f9-abcdf', says: '; did you mean "workers-5d8f9-abcde" or "workers-5d8f9-fghij"?' },
  { typed: 'gpu', says: '; did you mean "gpu-7c6b5-klmno"?' },
  { typed: 'Workers', says: '; did you mean "workers-5d8f9-abcde" or "workers-5d8f9-fghij"?' },
  { typed: 'y', says: '; did you mean "x"?' },
  { typed: 'database', says: '' },
  { typed: '', says: '; did you mean "x"?' },
])('of "$typed" it asks "$says"', ({ typed, says }) => {
  expect(didYouMean(typed, MACHINES)).toBe(says);
});

test('at most three names are suggested, each once, the likeliest first', () => {
  expect(didYouMean('pool-b', ['pool-z', 'pool-a', 'pool-c', 'pool-c', 'pool-b1', 'pool-d'])).toBe(
    '; did you mean "pool-b1" or "pool-a" or "pool-c"?',
  );
});
