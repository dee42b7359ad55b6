import { describe, expect, test } from '@jest/globals';

import { PRESERVE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineSummary } from '../../apis/machine/v1alpha1/machine.ts';
import { machine, machineSet, type BuiltMachine, type BuiltMachineSet } from '../../../test/builders.ts';
import { machineSetStatusChange, type MachineSetStatusFacts } from './status.ts';
import { LISTED_FAILED_MACHINES } from '../replicas/machine-state.ts';

const NOW = Date.parse('2026-01-02T00:00:00Z');
const SINCE = '2026-01-01T00:00:00Z';

const set = (mutate?: (s: BuiltMachineSet) => void): BuiltMachineSet => machineSet(mutate);
const failed = (name: string, at = SINCE): BuiltMachine =>
  machine((m) => {
    m.metadata.name = name;
    m.metadata.ownerReferences = [
      { apiVersion: 'machine.sapcloud.io/v1alpha1', kind: 'MachineSet', name: 'set-1', uid: 'u', controller: true },
    ];
    m.status.currentStatus.phase = 'Failed';
    m.status.lastOperation = { type: 'Create', state: 'Failed', description: 'no quota', lastUpdateTime: at };
  });

function change(facts: Partial<MachineSetStatusFacts>): Record<string, unknown> | undefined {
  const base = { set: set(), observedGeneration: 1, machines: [machine()], failure: undefined, invalid: undefined };
  return machineSetStatusChange({ ...base, nowMs: NOW, ...facts });
}

test('a status that says it all already is not written', () => {
  expect(change({})).toBeUndefined();
});

test('what a Go writer leaves out, or writes as zero or null, is the same', () => {
  const stored = set((s) => {
    s.status = { ...s.status, preservedFailedReplicas: 0, failedMachines: [], machineSetCondition: [] };
  });

  expect(change({ set: stored })).toBeUndefined();
});

test('counts machines by what they are good for', () => {
  const machines = [
    machine(),
    machine((m) => {
      m.metadata.labels = {};
      m.status.currentStatus.phase = 'Available';
    }),
    machine((m) => {
      m.metadata.deletionTimestamp = SINCE;
    }),
    machine((m) => {
      m.status.currentStatus = { phase: 'Failed', preserveExpiryTime: SINCE };
      m.metadata.annotations[PRESERVE_ANNOTATION] = 'auto-preserved';
    }),
  ];

  expect(change({ machines, observedGeneration: 2 })).toEqual({
    replicas: 4,
    fullyLabeledReplicas: 3,
    availableReplicas: 2,
    preservedFailedReplicas: 1,
    autoPreserveFailedMachineCount: 1,
    observedGeneration: 2,
    lastOperation: { lastUpdateTime: '2026-01-02T00:00:00Z' },
  });
});

test('a count that falls to nothing is written as 0', () => {
  expect(change({ machines: [] })).toMatchObject({ replicas: 0, readyReplicas: 0, availableReplicas: 0 });
});

describe('failed machines', () => {
  test('are listed with what failed', () => {
    expect(change({ machines: [failed('a')] })).toMatchObject({
      failedMachines: [
        {
          name: 'a',
          providerID: 'sim:///m-1',
          ownerRef: 'set-1',
          lastOperation: { type: 'Create', state: 'Failed', description: 'no quota', lastUpdateTime: SINCE },
        },
      ],
    });
  });

  test('are listed with short words, however much their provider said', () => {
    const talkative = failed('a');
    talkative.status.lastOperation.description = 'x'.repeat(24_000);

    const { failedMachines } = change({ machines: [talkative] }) as { failedMachines: MachineSummary[] };

    expect(failedMachines[0]?.lastOperation?.description?.length).toBeLessThanOrEqual(1_024);
  });

  test('are not listed while preserved, and the list goes when there are none', () => {
    const stored = set((s) => {
      s.status.failedMachines = [{ name: 'a' }];
    });
    const preserved = failed('a');
    preserved.status.currentStatus.preserveExpiryTime = SINCE;

    expect(change({ set: stored, machines: [preserved] })).toMatchObject({ failedMachines: null });
  });

  test('are listed up to a limit, the newest failures first; a condition tells how many there are', () => {
    const many = Array.from({ length: LISTED_FAILED_MACHINES + 20 }, (_unused, i) =>
      failed(`m-${i}`, new Date(NOW + i * 1_000).toISOString()),
    );

    const got = change({ machines: many }) as { failedMachines: { name: string }[]; machineSetCondition: unknown };

    expect(got.failedMachines).toHaveLength(LISTED_FAILED_MACHINES);
    expect(got.failedMachines[0]?.name).toBe(`m-${LISTED_FAILED_MACHINES + 19}`);
    expect(got.machineSetCondition).toEqual([
      {
        type: 'FailedMachinesTruncated',
        status: 'True',
        reason: 'TooManyFailedMachines',
        message: '120 machines have failed; the newest 100 are listed',
        lastTransitionTime: '2026-01-02T00:00:00Z',
      },
    ]);
  });
});

describe('conditions', () => {
  const frozen = {
    type: 'Frozen',
    status: 'True',
    reason: 'OverShootingReplicaCount',
    lastTransitionTime: SINCE,
  } as const;

  test.each([
    { replicas: 2, reason: 'FailedCreate' },
    { replicas: 0, reason: 'FailedDelete' },
    { replicas: 1, reason: undefined },
  ])('an error with 1 of $replicas machines is a ReplicaFailure for reason $reason', ({ replicas, reason }) => {
    const stored = set((s) => {
      s.spec.replicas = replicas;
      s.status.machineSetCondition = [frozen];
    });

    const got = change({ set: stored, failure: { text: 'no quota', kind: 'creation' } });

    expect(got?.['machineSetCondition']).toEqual([
      frozen,
      {
        type: 'ReplicaFailure',
        status: 'True',
        ...(reason === undefined ? {} : { reason }),
        message: 'no quota',
        lastTransitionTime: '2026-01-02T00:00:00Z',
      },
    ]);
  });

  test('the present error is told until there is none, with the time of the first one', () => {
    const told = { type: 'ReplicaFailure', status: 'True', message: 'first', lastTransitionTime: SINCE } as const;
    const stored = set((s) => {
      s.status.machineSetCondition = [told, frozen];
    });

    expect(change({ set: stored, failure: { text: 'second', kind: 'creation' } })?.['machineSetCondition']).toEqual([
      { ...told, message: 'second' },
      frozen,
    ]);
    expect(change({ set: stored })?.['machineSetCondition']).toEqual([frozen]);
  });

  test('an invalid spec is told with what is wrong', () => {
    expect(change({ invalid: 'spec.selector: missing' })?.['machineSetCondition']).toMatchObject([
      { type: 'InvalidSpec', status: 'True', message: 'spec.selector: missing' },
    ]);
  });
});

test('a Machine with some of the labels of the template is not fully labelled', () => {
  const labelled = machineSet((s) => void (s.spec.template.metadata = { labels: { pool: 'a', more: 'x' } }));
  const facts = {
    set: labelled,
    machines: [machine()],
    observedGeneration: 1,
    failure: undefined,
    invalid: undefined,
    nowMs: 0,
  };

  expect(machineSetStatusChange(facts)).toMatchObject({ fullyLabeledReplicas: 0 });
});
