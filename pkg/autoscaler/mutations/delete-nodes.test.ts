import { expect, test } from '@jest/globals';
import { Status } from 'nice-grpc';

import { groupState, nodeGroup, type MemberFacts } from '../../../test/node-group.ts';
import type { BuiltMachine } from '../../../test/builders.ts';
import { isRefusal } from './decision.ts';
import { decideDeletion, type DeletionTarget } from './delete-nodes.ts';
import type { RolloutStage } from '../../controllers/machine-deployment/rollout/rollout-stage.ts';

const { INVALID_ARGUMENT, FAILED_PRECONDITION } = Status;
const LATER = '2026-01-02T00:00:00Z';
const failed = (name: string): MemberFacts => ({ name, change: (m) => void (m.status.currentStatus.phase = 'Failed') });
const THREE: readonly MemberFacts[] = [{ name: 'a' }, { name: 'b' }, { name: 'c' }];

const node = (name: string): DeletionTarget => ({
  node: `node-${name}`,
  kind: 'machine',
  machine: name,
  isUnregistered: false,
});
const placeholder = (name: string): DeletionTarget => ({
  node: `requested://${name}`,
  kind: 'machine',
  machine: name,
  isUnregistered: true,
});
const missing = (place: number): DeletionTarget => ({
  node: `requested://deployment-1#x-${place}`,
  kind: 'missing',
  place: `x-${place}`,
});
const GONE: DeletionTarget = { node: 'requested://deployment-1#x-9', kind: 'gone' };
const one = (change: (m: BuiltMachine) => void): MemberFacts => ({ name: 'x', change });

test.each<{
  title: string;
  asked: DeletionTarget[];
  want: object;
  also?: MemberFacts;
  list?: string;
  rollout?: RolloutStage;
}>([
  { title: 'one', asked: [node('a')], want: { replicas: 2, machines: ['a'] } },
  { title: 'two', asked: [node('a'), node('c')], want: { replicas: 1, machines: ['a', 'c'] } },
  { title: 'one twice', asked: [node('a'), node('a')], want: { replicas: 2, machines: ['a'] } },
  { title: 'none', asked: [], want: { replicas: 3, machines: [] } },
  {
    title: 'one that is gone',
    asked: [{ node: 'z', kind: 'gone' }, node('z')],
    want: { replicas: 3, machines: [] },
  },
  {
    title: 'one that is listed, with a time',
    asked: [node('a')],
    list: `a~${LATER}`,
    want: { replicas: 3, machines: [] },
  },
  { title: 'one that is listed, without', asked: [node('a')], list: 'b,a', want: { replicas: 3, machines: [] } },
  {
    title: 'one that is listed, and one that is not',
    asked: [node('a'), node('b')],
    list: 'a',
    want: { replicas: 2, machines: ['b'] },
  },
  {
    title: 'one that is being deleted',
    also: one((m) => void Object.assign(m.metadata, { deletionTimestamp: LATER })),
    asked: [node('x')],
    want: { replicas: 3, machines: [] },
  },
  {
    title: 'one that has failed',
    also: one((m) => void (m.status.currentStatus.phase = 'Failed')),
    asked: [node('x'), placeholder('x')],
    want: { replicas: 3, machines: [] },
  },
  {
    title: 'one that is preserved, the Node of which the autoscaler would leave with its taint',
    also: one((m) => void (m.status.currentStatus.preserveExpiryTime = LATER)),
    asked: [node('x')],
    want: { code: FAILED_PRECONDITION, message: expect.stringContaining('machine x is preserved: to delete it, end') },
  },
  {
    title: 'one that has failed and is preserved',
    also: one((m) => void (m.status.currentStatus = { phase: 'Failed', preserveExpiryTime: LATER })),
    asked: [node('x')],
    want: { code: FAILED_PRECONDITION },
  },
  {
    title: 'one that is preserved without a Node',
    also: one((m) => void (m.status.currentStatus.preserveExpiryTime = LATER)),
    asked: [placeholder('x')],
    want: { replicas: 3, machines: [] },
  },
  {
    title: 'one that is preserved, and is being deleted',
    also: one((m) => {
      m.metadata.deletionTimestamp = LATER;
      m.status.currentStatus.preserveExpiryTime = LATER;
    }),
    asked: [node('x')],
    want: { replicas: 3, machines: [] },
  },
  {
    title: 'one that is preserved, and listed',
    also: one((m) => void (m.status.currentStatus.preserveExpiryTime = LATER)),
    list: 'x',
    asked: [node('x')],
    want: { replicas: 3, machines: [] },
  },
  {
    title: 'a Node that another Machine has by now',
    asked: [{ node: 'server-7', kind: 'another' }],
    want: { code: FAILED_PRECONDITION, message: expect.stringContaining('node server-7 belongs to another machine') },
  },
  {
    title: 'one that has failed and was preserved',
    also: one((m) => {
      m.status.currentStatus = { phase: 'Failed', preserveExpiryTime: '2025-01-01T00:00:00Z' };
    }),
    asked: [node('x')],
    want: { replicas: 3, machines: [] },
  },
  {
    title: 'one without Node',
    also: { name: 'x', hasNode: false },
    asked: [placeholder('x')],
    want: { replicas: 2, machines: ['x'] },
  },
  {
    title: 'one whose Node has joined in the meantime',
    asked: [node('a'), placeholder('b')],
    want: { code: FAILED_PRECONDITION },
  },
  {
    title: 'one whose Node has joined, and that is listed',
    asked: [placeholder('b')],
    list: 'b',
    want: { replicas: 3, machines: [] },
  },
  {
    title: 'one that has lost its Node',
    also: { name: 'x', isLost: true },
    asked: [placeholder('x')],
    want: { code: FAILED_PRECONDITION, message: expect.stringContaining('has lost its node, which may come back') },
  },
  {
    title: 'one that has lost its Node, and one that has joined',
    also: { name: 'x', isLost: true },
    asked: [placeholder('x'), node('b')],
    want: { replicas: 2, machines: ['b'] },
  },
  {
    title: 'one that has lost its Node, and that is listed',
    also: { name: 'x', isLost: true },
    asked: [placeholder('x')],
    list: 'x',
    want: { replicas: 3, machines: [] },
  },
  {
    title: 'one with a Node in a rollout',
    asked: [node('a')],
    rollout: 'choosing',
    want: { code: FAILED_PRECONDITION },
  },
  {
    title: 'one with a Node in a rollout that has chosen all that go',
    asked: [node('a')],
    rollout: 'emptying',
    want: { replicas: 2, machines: ['a'] },
  },
  {
    title: 'one with a Node in a rollout that is listed',
    asked: [node('a')],
    list: 'a',
    rollout: 'choosing',
    want: { replicas: 3, machines: [] },
  },
  {
    title: 'one without Node in a rollout',
    also: { name: 'x', hasNode: false },
    asked: [placeholder('x')],
    rollout: 'choosing',
    want: { replicas: 2, machines: ['x'] },
  },
  {
    title: 'one of another group',
    asked: [node('a'), { node: 'z', kind: 'foreign' }],
    want: { code: INVALID_ARGUMENT },
  },
  {
    title: 'one of no Machine',
    asked: [node('a'), { node: 'z', kind: 'unmanaged' }],
    want: { code: INVALID_ARGUMENT },
  },
  {
    title: 'one that has joined, and one of another group: what cannot be said comes before what cannot be done',
    asked: [placeholder('b'), { node: 'z', kind: 'foreign' }],
    want: { code: INVALID_ARGUMENT },
  },
  {
    title: 'more than the minimum leaves',
    asked: [node('a'), node('b'), node('c')],
    want: { code: FAILED_PRECONDITION },
  },
])('of a group of 1 to 5 with three Machines, goes $title', ({ asked, want, also, list, rollout = 'none' }) => {
  const members = also === undefined ? THREE : [...THREE.slice(1), also];
  const options = { rollout, ...(list === undefined ? {} : { list }) };

  expect(decideDeletion(groupState(3, members, options), nodeGroup(), asked)).toMatchObject(want);
});

test('whichever of those that it does not see the autoscaler names, it is told the same: each text is an Event of its own', () => {
  const unseen = (name: string): DeletionTarget => ({
    ...node(name),
    kind: 'machine',
    machine: name,
    isUnregistered: true,
  });
  const told = [[unseen('a'), unseen('b')], [unseen('c'), unseen('b')], [unseen('c')]].map((asked) =>
    decideDeletion(groupState(3, THREE), nodeGroup(), asked),
  );

  expect(told).toEqual(told.map(() => ({ code: FAILED_PRECONDITION, message: expect.any(String) })));
  expect(new Set(told.map((refusal) => isRefusal(refusal) && refusal.message)).size).toBe(1);
});

test.each<{ title: string; replicas: number; asked: DeletionTarget[]; min?: number; list?: string; want: object }>([
  { title: 'one', replicas: 5, asked: [missing(1)], want: { replicas: 4, machines: [], places: ['x-1'] } },
  {
    title: 'both',
    replicas: 5,
    asked: [missing(1), missing(0)],
    want: { replicas: 3, machines: [], places: ['x-1', 'x-0'] },
  },
  { title: 'the first, and no other', replicas: 5, asked: [missing(0)], want: { replicas: 4, places: ['x-0'] } },
  { title: 'one twice', replicas: 5, asked: [missing(0), missing(0)], want: { replicas: 4, places: ['x-0'] } },
  { title: 'one that has come', replicas: 5, asked: [GONE], want: { replicas: 5, machines: [], places: [] } },
  { title: 'one, and one that has come', replicas: 5, asked: [GONE, missing(1)], want: { replicas: 4 } },
  { title: 'one, when none is lacking', replicas: 3, asked: [missing(0)], want: { replicas: 3, machines: [] } },
  { title: 'one, and a Machine', replicas: 5, asked: [missing(1), node('a')], want: { replicas: 3, machines: ['a'] } },
  {
    title: 'as many as the minimum leaves',
    replicas: 5,
    min: 4,
    asked: [missing(1), missing(0)],
    want: { replicas: 4, places: ['x-1'] },
  },
  { title: 'none, of a group below its minimum', replicas: 0, asked: [], want: { replicas: 0, machines: [] } },
  { title: 'one of the minimum', replicas: 5, min: 5, asked: [missing(0)], want: { code: FAILED_PRECONDITION } },
  {
    title: 'one, and the minimum leaves only the Machine',
    replicas: 5,
    min: 4,
    asked: [missing(0), node('a')],
    want: { code: FAILED_PRECONDITION },
  },
  { title: 'one that replaces a listed Machine', replicas: 3, list: 'a', asked: [missing(0)], want: { replicas: 2 } },
])('of replicas without a Machine is taken back: $title', ({ replicas, asked, min = 1, list, want }) => {
  const state = groupState(replicas, THREE, list === undefined ? {} : { list });

  expect(decideDeletion(state, nodeGroup({ min, max: 9 }), asked)).toMatchObject(want);
});

test.each<{ title: string; asked: DeletionTarget[]; list?: string; want: object }>([
  {
    title: 'first replicas without any Machine',
    asked: [missing(3), missing(0)],
    want: { replicas: 4, machines: [] },
  },
  { title: 'then failed Machines', asked: [0, 1, 2].map(missing), want: { replicas: 3, machines: ['f1'] } },
  { title: 'all of them', asked: [0, 1, 2, 3].map(missing), want: { replicas: 2, machines: ['f1', 'f2'] } },
  {
    title: 'but those that are listed',
    asked: [0, 1, 2, 3].map(missing),
    list: 'f1',
    want: { replicas: 2, machines: ['f2'] },
  },
])('of missing replicas, two of four for failed Machines, go $title', ({ asked, list, want }) => {
  const members = [{ name: 'a' }, { name: 'b' }, failed('f2'), failed('f1')];
  const state = groupState(6, members, list === undefined ? {} : { list });

  expect(decideDeletion(state, nodeGroup({ max: 9 }), asked)).toMatchObject(want);
});

test.each<{ title: string; rollout: RolloutStage; leaves: boolean; asked: DeletionTarget; want: object }>([
  {
    title: 'and those before it are on their way out',
    rollout: 'choosing',
    leaves: true,
    asked: missing(0),
    want: { code: FAILED_PRECONDITION },
  },
  {
    title: 'and they are the last',
    rollout: 'emptying',
    leaves: true,
    asked: missing(0),
    want: { code: FAILED_PRECONDITION },
  },
  { title: 'and it has come', rollout: 'choosing', leaves: true, asked: GONE, want: { replicas: 1, machines: [] } },
  {
    title: 'and nothing makes room for it',
    rollout: 'choosing',
    leaves: false,
    asked: missing(0),
    want: { replicas: 0, machines: [] },
  },
  { title: 'of no rollout', rollout: 'none', leaves: true, asked: missing(0), want: { replicas: 0, machines: [] } },
])('a replica without a Machine, $title', ({ rollout, leaves, asked, want }) => {
  const leaving = one(({ metadata }) => void Object.assign(metadata, { deletionTimestamp: LATER }));
  const state = groupState(1, leaves ? [leaving] : [], { rollout });

  expect(decideDeletion(state, nodeGroup({ min: 0 }), [asked])).toMatchObject(want);
});

test.each<{ title: string; replicas: number; owed?: number; asked: DeletionTarget[]; want: object }>([
  { title: 'one beyond the size', replicas: 3, asked: [placeholder('x')], want: { code: FAILED_PRECONDITION } },
  {
    title: 'both, of which one is beyond the size',
    replicas: 4,
    asked: [placeholder('x'), placeholder('y')],
    want: { code: FAILED_PRECONDITION },
  },
  { title: 'one that was requested', replicas: 4, asked: [placeholder('x')], want: { replicas: 3, machines: ['x'] } },
  {
    title: 'one that comes for a Machine that is gone',
    replicas: 5,
    owed: 2,
    asked: [placeholder('x')],
    want: { code: FAILED_PRECONDITION },
  },
  {
    title: 'one beside such a one',
    replicas: 5,
    owed: 1,
    asked: [placeholder('x')],
    want: { replicas: 4, machines: ['x'] },
  },
  {
    title: 'a replica without a Machine, which comes for one that is gone',
    replicas: 6,
    owed: 3,
    asked: [missing(0)],
    want: { code: FAILED_PRECONDITION },
  },
  {
    title: 'as many without a Machine as are not for those that are gone',
    replicas: 8,
    owed: 3,
    asked: [0, 1, 2].map(missing),
    want: { replicas: 6, machines: [], places: ['x-0', 'x-1'] },
  },
  {
    title: 'a Machine, and as many without one as are not needed then',
    replicas: 8,
    owed: 3,
    asked: [missing(0), placeholder('x'), missing(1)],
    want: { replicas: 6, machines: ['x'], places: ['x-0'] },
  },
  {
    title: 'a Machine, and one without, when only one of them is not needed',
    replicas: 7,
    owed: 3,
    asked: [missing(0), placeholder('x')],
    want: { code: FAILED_PRECONDITION },
  },
])('of three Machines, and two that a rollout makes, is taken back: $title', ({ replicas, owed = 0, asked, want }) => {
  const members = [...THREE, { name: 'x', hasNode: false }, { name: 'y', hasNode: false }];
  const state = groupState(replicas, members, { rollout: 'choosing', owed });

  expect(decideDeletion(state, nodeGroup({ min: 0, max: 9 }), asked)).toMatchObject(want);
});

test('a failed Machine that was preserved until now still has its replica: it would be taken off the list again', () => {
  const expired = one(({ status }) => {
    Object.assign(status.currentStatus, { phase: 'Failed', preserveExpiryTime: '2025-12-31T00:00:00Z' });
  });
  const state = groupState(3, [{ name: 'a' }, { name: 'b' }, expired]);

  expect(decideDeletion(state, nodeGroup(), [missing(0), node('x')])).toEqual({
    replicas: 3,
    machines: [],
    places: [],
  });
});

test.each<{ asked: DeletionTarget; want: RegExp }>([
  {
    asked: { node: 'n', kind: 'foreign' },
    want: /node n is not in group deployment-1: delete it through its own group/,
  },
  { asked: { node: '', kind: 'nameless' }, want: /a node has neither an ID nor a name: set its providerID/ },
  { asked: { node: 'n', kind: 'unmanaged' }, want: /node n does not belong to a machine: delete it manually,/ },
  { asked: placeholder('a'), want: /machine a has joined in the meantime: list the nodes of group deployment-1 again/ },
])('a refusal of $asked.kind says what to do', ({ asked, want }) => {
  const decision = decideDeletion(groupState(3, THREE), nodeGroup(), [asked]);

  expect(isRefusal(decision) && decision.message).toMatch(want);
});

test('the refusal of several that have lost their Nodes is the same in whatever order they are named', () => {
  const state = groupState(
    3,
    ['a', 'b', 'c'].map((name) => ({ name, isLost: true })),
  );
  const refusals = [
    ['c', 'a', 'b'],
    ['b', 'c', 'a', 'c'],
  ].map((names) => decideDeletion(state, nodeGroup(), names.map(placeholder)));

  const message = 'machine a and 2 more have lost their nodes, which may come back: to give a machine up, delete it';
  expect(refusals).toEqual([0, 1].map(() => ({ code: FAILED_PRECONDITION, message })));
});

test('of a group whose spec is invalid no Machine goes: nothing would follow, for a Node that is drained', () => {
  const state = groupState(3, THREE);
  state.deployment.spec.template.spec = {};

  expect(decideDeletion(state, nodeGroup(), [node('a')])).toMatchObject({
    code: FAILED_PRECONDITION,
    message: expect.stringContaining('spec.template.spec.class'),
  });
  expect(decideDeletion(state, nodeGroup(), [GONE])).toMatchObject({ replicas: 3, machines: [] });
});
