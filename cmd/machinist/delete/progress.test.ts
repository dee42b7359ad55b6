import { describe, expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { annotationsFor, remainingPolicy, deletionProgressOf, deletionTimeoutText } from './progress.ts';

const POLICY = 'machine.sapcloud.io/deletion-policy';
const PREPARE = 'machine.sapcloud.io/prepare-deletion';
const SINCE = 'machine.sapcloud.io/deletion-preparation-since';

const annotated = (annotations: Record<string, string>): Machine =>
  machine((m) => void (m.metadata.annotations = annotations));
const saying = (reason: string, one: Machine): Machine => ({
  ...one,
  status: {
    ...one.status,
    machineConditions: [{ type: 'DeletionPrepared', status: 'False', reason, message: 'Waiting for 1 pod.' }],
  },
});
const deleting = machine((m) => {
  m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
});

describe('progress', () => {
  test.each([
    { goal: 'gone', one: undefined, want: { text: 'machine "m-1" has been deleted', isDone: true } },
    { goal: 'prepared', one: undefined, want: { isDone: true } },
    { goal: 'gone', one: deleting, want: { isDone: false } },
    { goal: 'prepared', one: deleting, want: { isDone: false } },
    {
      goal: 'prepared',
      one: saying('started', annotated({ [PREPARE]: 'true', [SINCE]: 'x' })),
      want: { text: 'Waiting for machine "m-1": Waiting for 1 pod.', isDone: false },
    },
    { goal: 'kept', one: saying('aborting', annotated({})), want: { isDone: false } },
    { goal: 'kept', one: annotated({ [SINCE]: 'x' }), want: { isDone: false } },
    { goal: 'kept', one: annotated({}), want: { text: 'machine "m-1" is kept', isDone: true } },
  ] as const)('towards $goal is $want', ({ goal, one, want }) => {
    expect(deletionProgressOf('m-1', one, goal, 0)).toMatchObject(want);
  });

  test.each([
    { goal: 'kept', one: undefined, says: 'too late to abort: machine "m-1" is already being deleted' },
    { goal: 'kept', one: deleting, says: 'too late to abort' },
    { goal: 'prepared', one: annotated({}), says: 'the deletion of machine "m-1" was aborted' },
  ] as const)('towards $goal ends: $says', ({ goal, one, says }) => {
    expect(() => deletionProgressOf('m-1', one, goal, 0)).toThrow(says);
  });
});

describe('what is asked for', () => {
  test.each([
    { goal: 'gone', policy: undefined, one: annotated({}), want: undefined },
    { goal: 'gone', policy: 'unsafe', one: deleting, want: { [POLICY]: 'unsafe' } },
    { goal: 'prepared', policy: undefined, one: annotated({}), want: { [PREPARE]: 'true' } },
    { goal: 'prepared', policy: 'graceful', one: annotated({}), want: { [POLICY]: 'graceful', [PREPARE]: 'true' } },
    { goal: 'kept', policy: undefined, one: annotated({ [PREPARE]: 'true' }), want: { [PREPARE]: null } },
    { goal: 'kept', policy: undefined, one: annotated({ [SINCE]: 'x' }), want: { [PREPARE]: null } },
  ] as const)('towards $goal with policy $policy is $want', ({ goal, policy, one, want }) => {
    expect(annotationsFor(one, goal, policy)).toEqual(want);
  });

  test.each([
    { goal: 'prepared', one: deleting, says: 'machine "m-1" is already being deleted' },
    { goal: 'kept', one: deleting, says: 'too late to abort' },
    { goal: 'kept', one: annotated({}), says: 'the deletion of machine "m-1" is not being prepared' },
  ] as const)('towards $goal is refused: $says', ({ goal, one, says }) => {
    expect(() => annotationsFor(one, goal, undefined)).toThrow(says);
  });
});

test.each([
  {
    title: 'is told, with how to take it off',
    one: annotated({ [POLICY]: 'graceful' }),
    want:
      'machine "m-1" keeps deletion policy graceful for any later deletion; to remove it: ' +
      'kubectl annotate machine -n default m-1 machine.sapcloud.io/deletion-policy-',
  },
  {
    title: 'of a Machine that was made of another object is taken off there',
    one: machine((m) => {
      m.metadata.annotations = { [POLICY]: 'unsafe' };
      m.metadata.ownerReferences = [
        { apiVersion: 'cluster.k8s.io/v1alpha1', kind: 'Machine', name: 'w-1', uid: 'u', controller: true },
      ];
    }),
    want:
      'machine "m-1" keeps deletion policy unsafe for any later deletion; to remove it: ' +
      'remove spec.providerSpec.value.deletionPolicy of machines.cluster.k8s.io w-1',
  },
  { title: 'is none', one: annotated({}), want: undefined },
])('the policy that an abort leaves $title', ({ one, want }) => {
  expect(remainingPolicy(one)).toBe(want);
});

describe('a wait that takes too long', () => {
  const look = 'show it with: machinist describe machine -n default m-1';

  test.each([
    {
      goal: 'prepared',
      one: annotated({ [PREPARE]: 'true' }),
      want: `the preparation continues; ${look}, abort it with: machinist delete machine -n default m-1 --abort`,
    },
    { goal: 'prepared', one: deleting, want: `the deletion continues; ${look}` },
    { goal: 'gone', one: deleting, want: `the deletion continues; ${look}` },
    { goal: 'kept', one: annotated({ [SINCE]: 'x' }), want: `the abort continues; ${look}` },
  ] as const)('towards $goal says: $want', ({ goal, one, want }) => {
    expect(deletionTimeoutText(one, goal)).toBe(want);
  });
});
