import { expect, test } from '@jest/globals';

import { machine, node, type BuiltMachine, type BuiltNode } from '../../../test/builders.ts';
import { leftRolloutMarks } from './rollout-marks.ts';

const TAINT = { key: 'deployment.machine.sapcloud.io/prefer-no-schedule', value: 'True', effect: 'PreferNoSchedule' };
const NOT_READY = { key: 'node.gardener.cloud/critical-components-not-ready', effect: 'NoSchedule' };
const USERS = { key: 'example.com/mine', effect: 'NoSchedule' };
const HELD = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
const OURS = 'cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm';
const NO_HOLD = { [HELD]: null, [OURS]: null };
const CANDIDATE = 'node.machine.sapcloud.io/candidate-for-update';
const SELECTED = 'node.machine.sapcloud.io/selected-for-update';
const RESULT = 'node.machine.sapcloud.io/update-result';
const CANDIDATE_FOR = 'node.machine.sapcloud.io/candidate-for-set';
const UPDATED_FOR = 'node.machine.sapcloud.io/updated-for-set';
const FAILED_REASON = 'node.machine.sapcloud.io/update-failed-reason';

type NodeChange = (n: BuiltNode) => void;
const tainted: NodeChange = (n) => (n.spec.taints = [USERS, TAINT]);
const held: NodeChange = (n) => Object.assign(n.metadata.annotations, { [HELD]: 'true', [OURS]: 'true' });
const labelled =
  (...labels: readonly string[]): NodeChange =>
  (n) =>
    labels.forEach((label) => (n.metadata.labels[label] = label === RESULT ? 'successful' : 'true'));
const says =
  (reason: string): NodeChange =>
  (n) =>
    (n.status.conditions = [{ type: 'InPlaceUpdate', status: 'True', reason }]);
const updated: readonly NodeChange[] = [labelled(CANDIDATE, SELECTED, RESULT), says('UpdateSuccessful')];

const CORDON_MARK = 'node.machine.sapcloud.io/cordoned-by-maintenance';
const preserved = (m: BuiltMachine): void => {
  m.status.currentStatus = { ...m.status.currentStatus, preserveExpiryTime: '2026-01-01T00:00:00Z' };
};
const annotated =
  (key: string) =>
  (m: BuiltMachine): void =>
    void (m.metadata.annotations[key] = '2026-01-01T00:00:00Z');
const maintained = annotated('machine.sapcloud.io/maintenance-since');
const prepared = annotated('machine.sapcloud.io/deletion-preparation-since');

const back = (annotations: object) => ({
  metadata: {
    labels: { [CANDIDATE]: null, [SELECTED]: null, [RESULT]: null },
    annotations: {
      [CANDIDATE_FOR]: null,
      [UPDATED_FOR]: null,
      [FAILED_REASON]: null,
      [CORDON_MARK]: null,
      ...annotations,
    },
  },
  spec: { unschedulable: null, taints: [USERS, NOT_READY] },
});

test.each<{ title: string; is: readonly NodeChange[]; of?: (m: BuiltMachine) => void; want: object | undefined }>([
  { title: 'carries nothing', is: [], want: undefined },
  { title: 'is tainted', is: [tainted], want: { metadata: {}, spec: { taints: [USERS] } } },
  { title: 'is held by us', is: [held], want: { metadata: { annotations: NO_HOLD } } },
  {
    title: 'is held by a user',
    is: [(n) => (n.metadata.annotations[HELD] = 'true')],
    want: undefined,
  },
  { title: 'is held because its machine is preserved', is: [held], of: preserved, want: undefined },
  { title: 'is held because its machine is in maintenance', is: [held], of: maintained, want: undefined },
  {
    title: 'is tainted and held because its machine is preserved',
    is: [tainted, held],
    of: preserved,
    want: { metadata: {}, spec: { taints: [USERS] } },
  },
  {
    title: 'is tainted, held and a candidate',
    is: [tainted, held, labelled(CANDIDATE)],
    want: {
      metadata: { annotations: { ...NO_HOLD, [CANDIDATE_FOR]: null }, labels: { [CANDIDATE]: null } },
      spec: { taints: [USERS] },
    },
  },
  { title: 'was made a candidate by a person', is: [labelled(CANDIDATE)], want: undefined },
  { title: 'is being drained for its update', is: [tainted, held, labelled(CANDIDATE, SELECTED)], want: undefined },
  {
    title: 'is updated, and its machine not well again',
    is: [tainted, held, ...updated, says('ReadyForUpdate')],
    want: undefined,
  },
  { title: 'is updated', is: [tainted, held, ...updated], want: back(NO_HOLD) },
  {
    title: 'is updated, although its selection was taken back, and its machine not well again',
    is: [tainted, labelled(CANDIDATE, RESULT), says('ReadyForUpdate')],
    want: undefined,
  },
  {
    title: 'is updated, although its selection was taken back',
    is: [tainted, labelled(RESULT), says('UpdateSuccessful')],
    want: back({}),
  },
  { title: 'is updated and held by a user', is: [tainted, ...updated], want: back({}) },
  { title: 'is updated in maintenance', is: [tainted, ...updated], of: maintained, want: undefined },
  { title: 'is updated and about to be deleted', is: [tainted, ...updated], of: prepared, want: undefined },
  { title: 'was updated by a person', is: updated, want: undefined },
])('a Node of no MachineDeployment that $title is given back: $want', ({ is, of = () => undefined, want }) => {
  const n = node((built) => {
    built.spec.taints = [USERS];
    for (const change of is) change(built);
  });

  expect(leftRolloutMarks(machine(of), n)).toEqual(want);
});
