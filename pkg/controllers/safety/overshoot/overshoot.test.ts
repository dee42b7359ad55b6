import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { machine, machineDeployment, machineSet } from '../../../../test/builders.ts';
import { frozeSet, unfrozeReleasedSet, unfrozeSmallSet } from '../../replicas/freeze-events.ts';
import { machinesIn, ownerlessBySet } from './controller.ts';
import { overshootLimitsOf } from './limits.ts';
import { decideOnDeployment, decideOnSet } from './freeze-decision.ts';

const MARGINS = { up: 2, down: 1 };

test.each([true, false])('what created too much is left to its own controller, labelled or not (%s)', (isLabelled) => {
  const marks = { isLabelled, hasCondition: true, isStopped: true };

  expect([0, 9].map((count) => decideOnSet(count, { high: 6, low: 5 }, marks, false))).toEqual(['leave', 'leave']);
  expect(decideOnDeployment([], marks)).toBe('leave');
});

describe('the limits of a set', () => {
  test.each([
    { strategy: { rollingUpdate: { maxSurge: 2 } }, replicas: 2, want: { high: 6, low: 5 } },
    { strategy: { rollingUpdate: { maxSurge: '10%' } }, replicas: 15, want: { high: 19, low: 18 } },
    { strategy: { inPlaceUpdate: { maxSurge: 1 } }, replicas: 3, want: { high: 6, low: 5 } },
    { strategy: { type: 'Recreate' }, replicas: 3, want: { high: 5, low: 4 } },
    { strategy: {}, replicas: 0, want: { high: 2, low: 1 } },
  ])('of a deployment with $replicas replicas and $strategy are $want', ({ strategy, replicas, want }) => {
    const deployment = machineDeployment((o) => {
      o.spec.replicas = replicas;
      o.spec.strategy = strategy;
    });

    expect(overshootLimitsOf(machineSet(), deployment, MARGINS)).toEqual(want);
  });

  test('alone are twice its replicas and more', () => {
    const set = machineSet((o) => {
      o.spec.replicas = 3;
    });

    expect(overshootLimitsOf(set, undefined, MARGINS)).toEqual({ high: 8, low: 7 });
  });
});

describe('the number of a set', () => {
  test('counts Machines that carry all labels of the template, also those on their way out', () => {
    const machines = [
      machine(),
      machine((o) => {
        o.metadata.name = 'm-2';
        o.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      }),
      machine((o) => {
        o.metadata.name = 'm-3';
        o.metadata.labels = {};
      }),
    ];

    expect(machinesIn(machineSet(), machines)).toBe(2);
  });

  test('counts VMs without a Machine for the set whose name begins theirs, the longest of several (MCM 346)', () => {
    const vm = (machineName: string): { providerID: string; machineName: string } => ({
      providerID: `sim:///${machineName}`,
      machineName,
    });

    const counts = ownerlessBySet(
      ['pool', 'pool-a', 'other'],
      [vm('pool-a-x1'), vm('pool-x2'), vm('poolx-1'), vm('pool')],
    );

    expect(Object.fromEntries(counts)).toEqual({ 'pool-a': 1, pool: 1 });
  });
});

describe('the verdict on a set', () => {
  const limits = { high: 6, low: 5 };
  test.each([
    { count: 6, isLabelled: false, hasCondition: false, isReleased: false, want: 'freeze' },
    { count: 7, isLabelled: false, hasCondition: true, isReleased: false, want: 'freeze' },
    { count: 7, isLabelled: true, hasCondition: false, isReleased: false, want: 'freeze' },
    { count: 7, isLabelled: true, hasCondition: true, isReleased: false, want: 'leave' },
    { count: 7, isLabelled: false, hasCondition: false, isReleased: true, want: 'leave' },
    { count: 5, isLabelled: true, hasCondition: true, isReleased: false, want: 'unfreeze' },
    { count: 5, isLabelled: false, hasCondition: true, isReleased: false, want: 'unfreeze' },
    { count: 5, isLabelled: false, hasCondition: false, isReleased: false, want: 'leave' },
  ] as const)(
    'with $count machines, label $isLabelled, condition $hasCondition, released $isReleased: $want',
    (row) => {
      expect(decideOnSet(row.count, limits, row, row.isReleased)).toBe(row.want);
    },
  );

  test.each([
    { title: 'is frozen, because its freeze was cut short', isLabelled: false, hasCondition: true, want: 'freeze' },
    { title: 'is left after its release', isLabelled: false, hasCondition: true, isReleased: true, want: 'leave' },
    { title: 'is left frozen', isLabelled: true, hasCondition: true, want: 'leave' },
    { title: 'is left to its label', isLabelled: true, hasCondition: false, want: 'leave' },
    { title: 'is left free', isLabelled: false, hasCondition: false, want: 'leave' },
  ])('between its limits $title', ({ isReleased = false, want, ...marks }) => {
    expect(decideOnSet(5, { high: 6, low: 4 }, marks, isReleased)).toBe(want);
  });

  test('never freezes and unfreezes at the same number', () => {
    fc.assert(
      fc.property(fc.nat(20), fc.nat(20), fc.nat(5), (count, high, down) => {
        const both = { high, low: high - Math.min(down, high) };
        const frozen = decideOnSet(count, both, { isLabelled: true, hasCondition: true }, false);
        const free = decideOnSet(count, both, { isLabelled: false, hasCondition: false }, false);
        expect(frozen === 'unfreeze' && free === 'freeze').toBe(false);
      }),
    );
  });
});

describe('the Events of a set', () => {
  test("are equal whenever the same happens to the same set again, and begin as the original's", () => {
    const set = machineSet((o) => (o.metadata.name = 's'));

    expect([frozeSet(set), unfrozeSmallSet(set), unfrozeReleasedSet(set)].map(({ message }) => message)).toEqual([
      'SafetyController: Froze MachineSet s due to replica overshooting; for the number of machines and how to release it, see condition Frozen',
      'SafetyController: Unfroze MachineSet s: it no longer has too many machines',
      'SafetyController: Unfroze MachineSet s: requested by annotation safety.machine.sapcloud.io/unfreeze',
    ]);
  });
});

describe('the verdict on a deployment', () => {
  const marks = (isLabelled: boolean, hasCondition: boolean) => ({ isLabelled, hasCondition });
  test.each([
    { sets: [marks(true, true)], own: marks(false, false), want: 'freeze' },
    { sets: [marks(false, true), marks(false, false)], own: marks(true, false), want: 'freeze' },
    { sets: [marks(true, false)], own: marks(true, true), want: 'leave' },
    { sets: [marks(false, false)], own: marks(false, true), want: 'unfreeze' },
    { sets: [], own: marks(true, true), want: 'unfreeze' },
    { sets: [], own: marks(false, false), want: 'leave' },
  ] as const)('with sets $sets that shows $own: $want', ({ sets, own, want }) => {
    expect(decideOnDeployment(sets, own)).toBe(want);
  });
});
