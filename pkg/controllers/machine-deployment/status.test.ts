import { describe, expect, test } from '@jest/globals';

import type { MachineDeploymentStatus } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { machine, machineDeployment, machineSet, type BuiltMachineDeployment } from '../../../test/builders.ts';
import {
  initialProgressOf,
  deadlineCheckMs,
  isComplete,
  maintenanceProgress,
  pauseProgress,
  rolloutProgressOf,
} from './rollout/progressing-condition.ts';
import { statusChange } from '../replicas/status-change.ts';
import { deploymentStatusOf, type MachineDeploymentStatusFacts } from './status.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';

const SINCE = '2026-01-01T00:00:00Z';
const NOW = Date.parse('2026-01-01T00:10:00Z');
const NOW_TEXT = '2026-01-01T00:10:00Z';

const deployment = (change?: (d: BuiltMachineDeployment) => void): BuiltMachineDeployment =>
  machineDeployment((d) => {
    d.spec.replicas = 3;
    d.status = { observedGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3 };
    change?.(d);
  });
const progressing =
  (reason: string, status: 'True' | 'False' | 'Unknown' = 'True') =>
  (d: BuiltMachineDeployment): void => {
    d.status.conditions = [{ type: 'Progressing', status, reason, lastUpdateTime: SINCE, lastTransitionTime: SINCE }];
  };
interface OwnedSet {
  readonly set: MachineSet;
  readonly machines: readonly Machine[];
}

const owned = (size: number, machines: number, available = machines): OwnedSet => ({
  set: machineSet((s) => {
    s.spec.replicas = size;
  }),
  machines: Array.from({ length: machines }, (_unused, i) =>
    machine((m) => {
      m.metadata.name = `m-${i}`;
      if (i >= available) m.status.currentStatus.phase = 'Pending';
    }),
  ),
});

function computed({
  newSet = owned(3, 3),
  oldSets = [],
  ...facts
}: Partial<Omit<MachineDeploymentStatusFacts, 'newSet' | 'oldSets' | 'machinesOf'>> & {
  readonly newSet?: OwnedSet;
  readonly oldSets?: readonly OwnedSet[];
}): MachineDeploymentStatus {
  return deploymentStatusOf({
    deployment: deployment(),
    observedGeneration: 1,
    newSet: newSet.set,
    oldSets: oldSets.map(({ set }) => set),
    machinesOf: (of) => [newSet, ...oldSets].find(({ set }) => set === of)?.machines ?? [],
    collisionCount: undefined,
    invalid: undefined,
    unsupported: undefined,
    nowMs: NOW,
    progress: () => undefined,
    ...facts,
  });
}

describe('counts', () => {
  test('are sums over all sets; unavailable counts from what the sets should have', () => {
    expect(computed({ newSet: owned(3, 2, 1), oldSets: [owned(2, 4, 2)], observedGeneration: 7 })).toMatchObject({
      observedGeneration: 7,
      replicas: 6,
      updatedReplicas: 2,
      readyReplicas: 3,
      availableReplicas: 3,
      unavailableReplicas: 2,
    });
  });

  test('of failed machines list the newest hundred of all sets, and otherwise what the sets list', () => {
    const failing = (prefix: string, count: number, minute: number): OwnedSet => ({
      set: machineSet((s) => {
        s.status.failedMachines = Array.from({ length: count }, (_unused, i) => ({
          name: `${prefix}-${i}`,
          lastOperation: { lastUpdateTime: new Date(NOW + minute * 60_000 - i).toISOString() },
        }));
      }),
      machines: [],
    });
    const few = computed({ newSet: failing('old', 1, 0), oldSets: [failing('new', 1, 1)] }).failedMachines;
    const many = computed({ newSet: failing('old', 80, 0), oldSets: [failing('new', 80, 1)] }).failedMachines;

    expect(few?.map(({ name }) => name)).toEqual(['old-0', 'new-0']);
    expect(many?.filter(({ name }) => name?.startsWith('new'))).toHaveLength(80);
    expect(many).toHaveLength(100);
  });

  test('that are stored already are not written again', () => {
    const stored = deployment((d) => {
      d.status.conditions = [{ type: 'Available', status: 'True', reason: 'MinimumReplicasAvailable' }];
    });

    expect(statusChange(stored.status, computed({ deployment: stored }))).toBeUndefined();
  });
});

describe('conditions', () => {
  test.each([
    { title: 'enough', available: 3, preserved: 0, limit: 0, want: 'True' },
    { title: 'as many missing as allowed', available: 2, preserved: 0, limit: 1, want: 'True' },
    { title: 'more missing than allowed', available: 1, preserved: 0, limit: 1, want: 'False' },
    { title: 'more missing, but preserved', available: 1, preserved: 1, limit: 1, want: 'True' },
  ])('Available with $title is $want', ({ available, preserved, limit, want }) => {
    const set = owned(3, 3, available);
    const machines = set.machines.map((m, i) =>
      i < available || i >= available + preserved
        ? m
        : { ...m, status: { ...m.status, currentStatus: { phase: 'Failed' as const, preserveExpiryTime: SINCE } } },
    );
    const d = deployment((built) => {
      built.spec.strategy.rollingUpdate = { maxSurge: 1, maxUnavailable: limit };
    });

    expect(computed({ deployment: d, newSet: { ...set, machines } }).conditions).toMatchObject([
      { type: 'Available', status: want },
    ]);
  });

  test('an equal status keeps its transition time, a condition of another writer stays', () => {
    const d = deployment((built) => {
      built.status.conditions = [
        { type: 'Available', status: 'True', reason: 'Other', lastTransitionTime: SINCE, lastUpdateTime: SINCE },
        { type: 'Frozen', status: 'True', reason: 'OverShootingReplicaCount' },
      ];
    });

    expect(computed({ deployment: d }).conditions).toEqual([
      {
        type: 'Available',
        status: 'True',
        reason: 'MinimumReplicasAvailable',
        message: 'Deployment has minimum availability.',
        lastTransitionTime: SINCE,
        lastUpdateTime: NOW_TEXT,
      },
      { type: 'Frozen', status: 'True', reason: 'OverShootingReplicaCount' },
    ]);
  });

  test.each([
    { isCutShort: true, reason: 'ChangeRefused' },
    { isCutShort: false, reason: 'FailedCreate' },
  ])(
    'a refused change comes before the failure of a set if it ends the work ($isCutShort)',
    ({ isCutShort, reason }) => {
      const failing = owned(3, 3);
      failing.set.status = {
        machineSetCondition: [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'quota' }],
      };
      const told = computed({ oldSets: [failing], refusal: 'a policy', isCutShort });

      expect(told.conditions).toContainEqual(expect.objectContaining({ type: 'ReplicaFailure', reason }));
    },
  );

  test('the failure of a set is told, and taken back', () => {
    const failing = owned(3, 3);
    failing.set.status = {
      machineSetCondition: [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'quota' }],
    };
    const told = computed({ oldSets: [failing] });
    const d = deployment((built) => {
      built.status.conditions = told.conditions ?? [];
    });

    expect(told.conditions).toContainEqual(expect.objectContaining({ type: 'ReplicaFailure', message: 'quota' }));
    expect(computed({ deployment: d }).conditions?.map(({ type }) => type)).toEqual(['Available']);
  });

  test('an invalid spec is told, whenever what is wrong changes', () => {
    const d = deployment((built) => {
      built.status.conditions = [{ type: 'InvalidSpec', status: 'True', reason: 'ValidationFailed', message: 'a' }];
    });

    expect(computed({ deployment: d, invalid: 'b' }).conditions).toMatchObject([{ type: 'InvalidSpec', message: 'b' }]);
    expect(computed({ deployment: d }).conditions).toMatchObject([{ type: 'Available' }]);
  });
});

const counts = (more: MachineDeploymentStatus): MachineDeploymentStatus => ({
  observedGeneration: 1,
  replicas: 3,
  updatedReplicas: 3,
  readyReplicas: 3,
  availableReplicas: 3,
  ...more,
});

const rolling = (d: BuiltMachineDeployment): void => {
  progressing('MachineSetUpdated')(d);
  d.status = { ...d.status, replicas: 4, updatedReplicas: 1, readyReplicas: 3, availableReplicas: 3 };
};

test('what is obeyed in part only is told beside the rest', () => {
  expect(computed({ unsupported: { reason: 'StrategyNotSupported', message: 'not yet' } }).conditions).toMatchObject([
    { type: 'InvalidSpec', status: 'True', reason: 'StrategyNotSupported', message: 'not yet' },
    { type: 'Available', status: 'True' },
  ]);
});

test('what is obeyed in part only stays told while what is rejected keeps the work from telling, until it is corrected', () => {
  const unsupported = { reason: 'StrategyNotSupported', message: 'not yet' } as const;
  const told = (type: string) =>
    deployment((built) => {
      built.spec.strategy = { type };
      built.status.conditions = [{ type: 'InvalidSpec', status: 'True', ...unsupported }];
    });
  const d = told('InPlaceUpdate');
  const typesIn = (isCutShort: boolean, of = d) =>
    computed({ deployment: of, isCutShort }).conditions?.map(({ type }) => type);

  expect(typesIn(true)).toEqual(['InvalidSpec', 'Available']);
  expect(typesIn(false)).toEqual(['Available']);
  expect(typesIn(true, deployment())).toEqual(['Available']);
  expect(typesIn(true, told('RollingUpdate'))).toEqual(['Available']);
});

describe('progress', () => {
  test.each([
    { title: 'all is of the new template', change: rolling, next: {}, reason: 'NewMachineSetAvailable' },
    {
      title: 'a new machine is there',
      change: rolling,
      next: { replicas: 4, updatedReplicas: 2 },
      reason: 'MachineSetUpdated',
    },
    {
      title: 'an old one is gone',
      change: rolling,
      next: { replicas: 3, updatedReplicas: 1 },
      reason: 'MachineSetUpdated',
    },
    { title: 'nothing happened', change: rolling, next: { replicas: 4, updatedReplicas: 1 }, reason: undefined },
    {
      title: 'nothing happened for too long',
      change: (d: BuiltMachineDeployment): void => {
        rolling(d);
        d.spec.progressDeadlineSeconds = 599;
      },
      next: { replicas: 4, updatedReplicas: 1 },
      reason: 'ProgressDeadlineExceeded',
    },
    {
      title: 'it was complete, and is scaled (MCM 952, MCM 1014)',
      change: progressing('NewMachineSetAvailable'),
      next: { replicas: 2, updatedReplicas: 2, availableReplicas: 2 },
      reason: undefined,
    },
    {
      title: 'all is there but the generation is newer',
      change: (d: BuiltMachineDeployment): void => {
        progressing('MachineSetUpdated')(d);
        d.metadata.generation = 2;
      },
      next: {},
      reason: undefined,
    },
  ])('when $title says $reason', ({ change, next, reason }) => {
    expect(rolloutProgressOf(deployment(change), counts(next), 'd-1', NOW)?.reason).toBe(reason);
  });

  test.each([
    { newSet: undefined, replicas: 3, reason: 'MachineSetUpdated' },
    { newSet: undefined, replicas: 0, reason: undefined },
    { newSet: 'd-1', replicas: 3, reason: undefined },
  ])(
    'without any machine of $replicas, where the new set is $newSet, a rollout that was complete is $reason',
    ({ newSet, replicas, reason }) => {
      const d = deployment((built) => {
        progressing('NewMachineSetAvailable')(built);
        Object.assign(built.spec, { replicas });
        built.status = { ...built.status, updatedReplicas: 0 };
      });
      const none = counts({ replicas: 0, updatedReplicas: 0, readyReplicas: 0, availableReplicas: 0 });

      expect(rolloutProgressOf(d, none, newSet, NOW)?.reason).toBe(reason);
    },
  );

  test('each step moves the time from which the deadline counts, though nothing else of the condition changes', () => {
    const d = deployment(rolling);
    const step = rolloutProgressOf(d, counts({ replicas: 4, updatedReplicas: 2 }), 'd-1', NOW);

    expect(computed({ deployment: d, progress: () => step }).conditions).toContainEqual(
      expect.objectContaining({
        type: 'Progressing',
        reason: 'MachineSetUpdated',
        lastUpdateTime: NOW_TEXT,
        lastTransitionTime: SINCE,
      }),
    );
  });

  test.each([
    { title: 'never told', change: undefined, next: {}, reason: 'FoundNewMachineSet' },
    {
      title: 'complete before a new template',
      change: progressing('NewMachineSetAvailable'),
      next: { updatedReplicas: 0 },
      reason: 'NewMachineSetCreated',
    },
    { title: 'complete', change: progressing('NewMachineSetAvailable'), next: {}, reason: undefined },
    {
      title: 'not created at first',
      change: progressing('MachineSetCreateError', 'False'),
      next: {},
      reason: 'NewMachineSetCreated',
    },
  ])('a set that was $title begins with $reason', ({ change, next, reason }) => {
    expect(initialProgressOf(deployment(change), counts(next), 'd-1')?.reason).toBe(reason);
  });

  test('the deadline is looked at a second after it', () => {
    const d = deployment((built) => {
      rolling(built);
      built.spec.progressDeadlineSeconds = 660;
    });

    expect(deadlineCheckMs(d, NOW)).toBe(61_000);
    expect(deadlineCheckMs(deployment(rolling), NOW)).toBeUndefined();
    expect(isComplete(deployment(), deployment().status)).toBe(true);
  });

  test.each([
    { title: 'is paused', paused: true, reason: 'MachineSetUpdated', want: 'DeploymentPaused' },
    { title: 'stays paused', paused: true, reason: 'DeploymentPaused', want: undefined },
    { title: 'is resumed', paused: false, reason: 'DeploymentPaused', want: 'DeploymentResumed' },
    { title: 'goes on', paused: false, reason: 'DeploymentResumed', want: undefined },
    { title: 'is paused after its deadline', paused: true, reason: 'ProgressDeadlineExceeded', want: undefined },
  ])('a rollout that $title says $want', ({ paused, reason, want }) => {
    const d = deployment((built) => {
      progressing(reason)(built);
      built.spec.paused = paused;
    });

    expect(pauseProgress(d)?.reason).toBe(want);
  });
});

test('a surplus is no negative number of unavailable machines', () => {
  expect(computed({ newSet: owned(1, 2) })).toMatchObject({ unavailableReplicas: 0 });
});

test('a rollout is not complete while other machines exist', () => {
  const status = { observedGeneration: 1, updatedReplicas: 3, availableReplicas: 3 };

  expect(isComplete(deployment(), { ...status, replicas: 4 })).toBe(false);
  expect(isComplete(deployment(), { ...status, replicas: 3 })).toBe(true);
});

test('annotations that mean nothing are told, whenever that changes, also of an invalid spec, until they are corrected', () => {
  const annotated = (policy: string, conditions: MachineDeploymentStatus['conditions']): BuiltMachineDeployment =>
    deployment((d) => {
      d.metadata.annotations = { 'machine.sapcloud.io/deletion-policy': policy };
      d.status.conditions = conditions ?? [];
    });
  const told = ({ conditions }: MachineDeploymentStatus): string | undefined =>
    conditions?.find(({ type }) => type === 'InvalidAnnotation')?.message;

  const first = computed({ deployment: annotated('soft', []) });
  const second = computed({ deployment: annotated('hard', first.conditions), invalid: 'spec.selector: missing' });

  expect(told(first)).toContain('of the MachineDeployment is "soft"');
  expect(told(second)).toContain('of the MachineDeployment is "hard"');
  expect(told(computed({ deployment: annotated('unsafe', second.conditions) }))).toBeUndefined();
});

describe('a rollout that machines in maintenance hold up', () => {
  const held = deployment((d) => {
    d.spec.progressDeadlineSeconds = 60;
    d.status.conditions = [
      {
        type: 'Progressing',
        status: 'Unknown',
        reason: 'WaitingForMaintenance',
        message: 'Waits',
        lastUpdateTime: SINCE,
      },
    ];
  });

  test('says so, whenever it waits for another one', () => {
    expect(maintenanceProgress(held, counts({ updatedReplicas: 1 }), 'Waits')).toMatchObject({
      status: 'Unknown',
      reason: 'WaitingForMaintenance',
      refresh: false,
    });
    expect(maintenanceProgress(held, counts({ updatedReplicas: 1 }), 'Waits more')).toMatchObject({ refresh: true });
  });

  test('is not judged by its deadline, which counts from when it goes on', () => {
    expect(rolloutProgressOf(held, counts({ updatedReplicas: 3, availableReplicas: 2 }), 'new', NOW)).toBeUndefined();
    expect(
      deadlineCheckMs({ ...held, status: { ...held.status, ...counts({ availableReplicas: 2 }) } }, NOW),
    ).toBeUndefined();
    expect(maintenanceProgress(held, counts({}), undefined)).toMatchObject({ reason: 'MaintenanceEnded' });
  });

  test.each([
    { title: 'one that was complete', d: deployment(progressing('NewMachineSetAvailable')), hold: 'Waits' },
    { title: 'one that goes on', d: deployment(rolling), hold: undefined },
  ])('$title is left alone', ({ d, hold }) => {
    expect(maintenanceProgress(d, counts({ availableReplicas: 2 }), hold)).toBeUndefined();
  });
});
