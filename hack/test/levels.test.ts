import { describe, expect, test } from '@jest/globals';

import { LEVELS, runsOf } from './levels.ts';

describe('runs of a test command', () => {
  test('takes the unit level first, and all that need a server together', () => {
    expect(runsOf(LEVELS, 2)).toEqual([
      { levels: ['unit'], needsControlPlane: false, workers: 2 },
      { levels: ['integration', 'faults', 'e2e', 'openstack'], needsControlPlane: true, workers: 3 },
    ]);
  });

  test.each(LEVELS)('takes one level alone: %s', (level) => {
    const runs = runsOf([level]);

    expect(runs.map(({ levels }) => levels)).toEqual([[level]]);
    expect(runs.map(({ needsControlPlane }) => needsControlPlane)).toEqual([level !== 'unit']);
  });
});
