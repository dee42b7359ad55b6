import { expect, test } from '@jest/globals';

import { firstSeedOf, reportOf } from './fresh.ts';

test('the seeds of a commit begin at its own number', () => {
  expect(firstSeedOf('0000010abc')).toBe(16);
  expect(firstSeedOf('ffffffff')).toBe(0xfffffff);
  expect(() => firstSeedOf('HEAD')).toThrow('HEAD is no commit');
  expect(() => firstSeedOf('')).toThrow('is no commit');
});

test('fresh seeds that break a promise are named with the commit and how to run them', () => {
  expect(reportOf([4, 5, 6], [], 'abc')).toEqual(['fresh seeds of abc: 3 (4 to 6), none broke a promise']);
  expect(reportOf([4, 5, 6], [5, 6], 'abc').join('\n')).toMatch(
    /abc: 2 of 3 \(4 to 6\) BROKE A PROMISE: 5, 6\n.*\n.*--seed 5 .*\n.*--seed 6 /,
  );
  expect(reportOf([], [], 'abc')).toEqual(['fresh seeds of abc: 0 (none), none broke a promise']);
});
