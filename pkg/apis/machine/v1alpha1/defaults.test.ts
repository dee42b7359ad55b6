import { expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet } from '../../../../test/builders.ts';
import {
  autoPreserveMaxOf,
  classNameOf,
  phaseOf,
  progressDeadlineMsOf,
  replicasOf,
  revisionHistoryLimitOf,
  rollbackRevisionOf,
  templateLabelsOf,
  vmClassNameOf,
} from './defaults.ts';
import { VM_CLASS_ANNOTATION } from './labels.ts';
import type { MachineDeploymentSpec } from './machine-deployment.ts';

/** A spec in which null stands for absent, as Go writes it. */
function deployment(members: Record<string, unknown>): { spec: MachineDeploymentSpec } {
  return machineDeployment((d) => Object.assign(d.spec, members));
}

test.each([
  { replicas: 3, want: 3 },
  { replicas: 0, want: 0 },
  { replicas: null, want: 0 },
  { replicas: undefined, want: 0 },
  { replicas: -2, want: 0 },
])('replicas of $replicas count as $want', ({ replicas, want }) => {
  expect(replicasOf(deployment({ replicas }))).toBe(want);
  expect(replicasOf(machineSet((s) => Object.assign(s.spec, { replicas })))).toBe(want);
  expect(autoPreserveMaxOf(deployment({ autoPreserveFailedMachineMax: replicas }))).toBe(want);
});

test.each([
  { spec: { class: { name: 'c' } }, want: 'c' },
  { spec: { class: {} }, want: '' },
  { spec: {}, want: '' },
  { spec: undefined, want: '' },
])('a Machine of spec $spec has class "$want"', ({ spec, want }) => {
  expect(classNameOf({ spec })).toBe(want);
});

test.each([
  { recorded: 'class-0', want: 'class-0' },
  { recorded: '', want: 'class-1' },
  { recorded: undefined, want: 'class-1' },
])('the VM of a Machine that has recorded class "$recorded" is of class "$want"', ({ recorded, want }) => {
  const one = machine((m) => {
    if (recorded !== undefined) m.metadata.annotations[VM_CLASS_ANNOTATION] = recorded;
  });

  expect(vmClassNameOf(one)).toBe(want);
});

test('a set without spec has no replicas', () => {
  expect(replicasOf({})).toBe(0);
  expect(autoPreserveMaxOf({})).toBe(0);
});

test.each([
  { limit: 2, want: 2 },
  { limit: 0, want: 0 },
  { limit: -1, want: 0 },
  { limit: null, want: undefined },
  { limit: undefined, want: undefined },
])('a history limit of $limit keeps $want', ({ limit, want }) => {
  expect(revisionHistoryLimitOf(deployment({ revisionHistoryLimit: limit }))).toBe(want);
});

test.each([
  { seconds: 600, want: 600_000 },
  { seconds: -1, want: 0 },
  { seconds: null, want: undefined },
  { seconds: undefined, want: undefined },
])('a progress deadline of $seconds is $want ms', ({ seconds, want }) => {
  expect(progressDeadlineMsOf(deployment({ progressDeadlineSeconds: seconds }))).toBe(want);
});

test.each([
  { rollbackTo: { revision: 4 }, want: 4 },
  { rollbackTo: {}, want: 0 },
  { rollbackTo: null, want: undefined },
  { rollbackTo: undefined, want: undefined },
])('a rollback to $rollbackTo is one to $want', ({ rollbackTo, want }) => {
  expect(rollbackRevisionOf(deployment({ rollbackTo }))).toBe(want);
});

test('a machine without status has the empty phase', () => {
  expect(phaseOf({})).toBe('');
  expect(phaseOf(machine())).toBe('Running');
});

test('a template without metadata has no labels', () => {
  expect(templateLabelsOf(undefined)).toEqual({});
  expect(templateLabelsOf({})).toEqual({});
  expect(templateLabelsOf({ metadata: { labels: { a: 'b' } } })).toEqual({ a: 'b' });
});
