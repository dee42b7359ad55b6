import { describe, expect, test } from '@jest/globals';

import { LEVELS, optionalProgramsOf, runsOf } from './levels.ts';

describe('runs of a test command', () => {
  test('takes the unit level with half of the cores, or two, and beside it all that need a server together', () => {
    expect(runsOf(LEVELS, 2)).toEqual([
      { levels: ['unit'], needsControlPlane: false, workers: 2 },
      { levels: ['integration', 'faults', 'e2e', 'openstack'], needsControlPlane: true, workers: 6 },
    ]);
  });

  test('takes the unit level alone with all cores', () => {
    expect(runsOf(['unit'], 4)).toEqual([{ levels: ['unit'], needsControlPlane: false, workers: 4 }]);
  });

  test.each(LEVELS)('takes one level alone: %s', (level) => {
    const runs = runsOf([level]);

    expect(runs.map(({ levels }) => levels)).toEqual([[level]]);
    expect(runs.map(({ needsControlPlane }) => needsControlPlane)).toEqual([level !== 'unit']);
  });
});

test.each([
  { levels: LEVELS, jestArguments: [], programs: ['kwok', 'cluster-api'] },
  { levels: ['e2e'], jestArguments: [], programs: ['kwok'] },
  { levels: ['faults'], jestArguments: [], programs: [] },
  { levels: ['integration'], jestArguments: ['test/integration/kwok-driver.test.ts'], programs: ['kwok'] },
  { levels: ['integration'], jestArguments: ['kwok', '-t', 'a Node'], programs: ['kwok'] },
  { levels: LEVELS, jestArguments: ['test/integration/drain.test.ts'], programs: [] },
  { levels: ['integration'], jestArguments: ['test/e2e/demo.test.ts'], programs: [] },
] as const)('$levels with $jestArguments needs $programs besides the control plane', (run) => {
  expect(optionalProgramsOf(run.levels, run.jestArguments)).toEqual(run.programs);
});
