import { expect, test } from '@jest/globals';

import type { ClusterAPICondition } from '../api/condition.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import type { DeletionWait } from './machine-pass.ts';
import { foundIn, machineEventsOf } from './machine-events.ts';

const machine = (conditions: readonly ClusterAPICondition[], metadata: object = {}): ClusterAPIMachine => ({
  metadata: { name: 'm', uid: 'u', resourceVersion: '1', creationTimestamp: '', ...metadata },
  status: { conditions, nodeRef: { name: 'n' } },
});
const condition = (
  type: string,
  status: ClusterAPICondition['status'],
  reason: string,
  message = '',
): ClusterAPICondition => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});
const NOTHING = { problems: [], deleting: undefined, foundBefore: new Set<string>() };
const missing = condition('InfrastructureReady', 'False', 'ObjectDoesNotExist', 'create it');
const waiting = condition('InfrastructureReady', 'False', 'NotReady', 'not yet');

test.each<{
  what: string;
  before?: readonly ClusterAPICondition[];
  after: readonly ClusterAPICondition[];
  want: readonly string[];
}>([
  {
    what: 'something is missing',
    after: [missing],
    want: ['Warning InfrastructureNotReady ObjectDoesNotExist: create it'],
  },
  {
    what: 'nothing is named',
    after: [condition('BootstrapConfigReady', 'False', 'NotNamed', 'name one')],
    want: ['Warning BootstrapNotReady NotNamed: name one'],
  },
  { what: 'it is still missing', before: [missing], after: [{ ...missing, message: 'in other words' }], want: [] },
  {
    what: 'it has come',
    before: [missing],
    after: [waiting],
    want: ['Normal InfrastructureNotReady NotReady: not yet'],
  },
  { what: 'all is well', before: [waiting], after: [condition('InfrastructureReady', 'True', 'Ready')], want: [] },
  { what: 'it cannot be told', after: [condition('InfrastructureReady', 'Unknown', 'InternalError', 'x')], want: [] },
  { what: 'the Node is not Ready', after: [condition('NodeReady', 'False', 'NodeNotReady')], want: [] },
  {
    what: 'the Node is gone',
    after: [condition('NodeReady', 'False', 'NodeDeleted')],
    want: ['Warning NodeLost NodeDeleted'],
  },
])('when $what, $want is told', ({ before = [], after, want }) => {
  const told = machineEventsOf(machine(before), machine(after), NOTHING);

  expect(told.map(({ type, reason, message }) => `${type} ${reason} ${message}`)).toEqual(want);
});

test('of a Machine that goes nothing is told that it has lost', () => {
  expect(machineEventsOf(machine([]), machine([missing], { deletionTimestamp: 'now' }), NOTHING)).toEqual([]);
});

test('each problem is told when it comes, and by nothing else', () => {
  const foreign = { ...waiting, message: 'new' };
  const [none, old] = [machine([]), foundIn({ ...NOTHING, problems: ['old'] })];

  expect(machineEventsOf(none, machine([foreign]), { ...NOTHING, problems: ['old', 'new'], foundBefore: old })).toEqual(
    [{ type: 'Warning', reason: 'Problem', message: 'new' }],
  );
  expect(machineEventsOf(none, none, { ...NOTHING, problems: ['old'], foundBefore: old })).toEqual([]);
});

test.each([
  { message: '* Problem: old', want: [] },
  { message: 'another', want: ['Problem', 'DrainBlocked'] },
])('the first pass of a process tells what the conditions did not say: $message before, $want', ({ message, want }) => {
  const saying = (text: string) => [
    condition('Ready', 'False', 'NotReady', text),
    condition('Deleting', 'True', 'DrainingNode', text),
  ];
  const event = { type: 'Warning', reason: 'DrainBlocked', why: 'held' } as const;
  const deleting = { reason: 'DrainingNode', message: 'm', event };
  const found = { problems: ['old'], deleting, foundBefore: undefined };

  const told = machineEventsOf(machine(saying(message)), machine(saying('* Problem: old')), found);

  expect(told.map(({ reason }) => reason)).toEqual(expect.arrayContaining(want));
  expect(told).toHaveLength(want.length);
});

test.each(['NodeDeleted', 'ConnectionDown'])('a Machine whose Node was never found has lost none: %s', (reason) => {
  const { metadata, status } = machine([condition('NodeReady', 'Unknown', reason, 'the kubeconfig is of no use')]);
  const never = { metadata, status: { conditions: status?.conditions ?? [] } };

  expect(machineEventsOf(machine([]), never, NOTHING)).toEqual([
    { type: 'Warning', reason: 'NodeNotFound', message: `${reason}: the kubeconfig is of no use` },
  ]);
});

test.each<{ what: string; before?: DeletionWait; after: DeletionWait; want: readonly string[] }>([
  {
    what: 'waits for a hook',
    after: {
      reason: 'WaitingForPreDrainHook',
      message: 'for hooks: a, b',
      event: { type: 'Normal', reason: 'WaitingForPreDrainHook' },
    },
    want: ['Normal WaitingForPreDrainHook for hooks: a, b'],
  },
  {
    what: 'still waits for one of them',
    before: {
      reason: 'WaitingForPreDrainHook',
      message: 'for hooks: a, b',
      event: { type: 'Normal', reason: 'WaitingForPreDrainHook' },
    },
    after: {
      reason: 'WaitingForPreDrainHook',
      message: 'for hooks: b',
      event: { type: 'Normal', reason: 'WaitingForPreDrainHook' },
    },
    want: [],
  },
  {
    what: 'is drained',
    after: { reason: 'DrainingNode', message: 'Draining Node n: 2 Pods remain' },
    want: [],
  },
  {
    what: 'waits for Pods from now on',
    before: { reason: 'DrainingNode', message: 'Draining Node n: 2 Pods remain' },
    after: {
      reason: 'DrainingNode',
      message: 'Draining Node n: 2 Pods remain; ns/a (held)',
      event: { type: 'Warning', reason: 'DrainBlocked', why: 'held' },
    },
    want: ['Warning DrainBlocked Draining Node n: 2 Pods remain; ns/a (held)'],
  },
  {
    what: 'waits for another Pod for the same reason',
    before: {
      reason: 'DrainingNode',
      message: 'Draining Node n: 2 Pods remain; ns/a (held)',
      event: { type: 'Warning', reason: 'DrainBlocked', why: 'held' },
    },
    after: {
      reason: 'DrainingNode',
      message: 'Draining Node n: 1 Pod is left; ns/b (held)',
      event: { type: 'Warning', reason: 'DrainBlocked', why: 'held' },
    },
    want: [],
  },
])('when a deletion $what, $want is told', ({ before, after, want }) => {
  const going = machine([], { deletionTimestamp: 'now' });
  const foundBefore = foundIn({ problems: [], deleting: before });
  const told = machineEventsOf(machine([]), going, { ...NOTHING, deleting: after, foundBefore });

  expect(told.map(({ type, reason, message }) => `${type} ${reason} ${message}`)).toEqual(want);
});
