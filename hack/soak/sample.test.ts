import { expect, test } from '@jest/globals';

import { growthIn, type Sample } from './sample.ts';

const samples = (heap: readonly number[], descriptors = 30): Sample[] =>
  heap.map((heapMB, minute) => ({ minute, heapMB, residentMB: 100, descriptors: descriptors + minute / 100 }));

test.each([
  { what: 'garbage that comes and goes', heap: [40, 60, 45, 70, 42, 65, 41, 80, 43], says: [] },
  { what: 'memories that fill until they are full', heap: [28, 60, 35, 50, 40, 65, 44, 80, 43], says: [] },
  { what: 'a leak', heap: [40, 60, 45, 50, 52, 65, 61, 80, 63], says: ['heap (MB) grew from 50.0 to 61.0'] },
  { what: 'a run that was too short', heap: [40, 41], says: ['only 2 quiet moments: run it longer'] },
])('tells $what', ({ heap, says }) => {
  expect(growthIn(samples(heap))).toEqual(says);
});
