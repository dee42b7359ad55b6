import { expect, test } from '@jest/globals';

import { WORLDS, type WorldName } from '../../test/simulation/worlds/worlds.ts';
import { firstSeedOf, type FreshSeed, reportOf, worldOf } from './fresh.ts';

test('the seeds of a commit begin at its own number', () => {
  expect(firstSeedOf('0000010abc')).toBe(16);
  expect(firstSeedOf('ffffffff')).toBe(0xfffffff);
  expect(() => firstSeedOf('HEAD')).toThrow('HEAD is no commit');
  expect(() => firstSeedOf('')).toThrow('is no commit');
});

test('fresh seeds are run in every world', () => {
  const worlds = new Set(Array.from({ length: 20 }, (_, i) => worldOf(0xfffffff + i)));

  expect(Object.keys(WORLDS).filter((name) => !worlds.has(name as WorldName))).toEqual([]);
});

test('fresh seeds that break a promise are named with the commit and how to run them', () => {
  const run: FreshSeed[] = [
    { seed: 4, world: 'machines' },
    { seed: 5, world: 'ironcore' },
    { seed: 6, world: 'machines' },
  ];

  expect(reportOf(run, [], 'abc')).toEqual([
    'fresh seeds of abc: 3 (4 to 6: 2 of machines, 1 of ironcore), none broke a promise',
  ]);
  expect(reportOf(run, run.slice(1), 'abc').join('\n')).toMatch(
    /abc: 2 of 3 \(4 to 6: .*\) BROKE A PROMISE: 5, 6\n.*\n.*--seed 5 --world ironcore\n.*--seed 6 --world machines$/,
  );
  expect(reportOf([], [], 'abc')).toEqual(['fresh seeds of abc: 0 (none), none broke a promise']);
});
