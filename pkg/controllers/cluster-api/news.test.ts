import { expect, test } from '@jest/globals';

import type { Condition } from '../../apis/cluster-api/condition.ts';
import type { ClusterAPIMachine } from '../../apis/cluster-api/machine.ts';
import { newsOf } from './news.ts';

const machine = (conditions: readonly Condition[], metadata: object = {}): ClusterAPIMachine => ({
  metadata: { name: 'm', uid: 'u', resourceVersion: '1', creationTimestamp: '', ...metadata },
  status: { conditions },
});
const condition = (type: string, status: Condition['status'], reason: string, message = ''): Condition => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});
const missing = condition('InfrastructureReady', 'False', 'DoesNotExist', 'create it');
const waiting = condition('InfrastructureReady', 'False', 'NotReady', 'not yet');

test.each<{ what: string; before?: readonly Condition[]; after: readonly Condition[]; want: readonly string[] }>([
  { what: 'something is missing', after: [missing], want: ['Warning InfrastructureNotReady DoesNotExist: create it'] },
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
  const told = newsOf(machine(before), machine(after), []);

  expect(told.map(({ type, reason, message }) => `${type} ${reason} ${message}`)).toEqual(want);
});

test('of a Machine that goes nothing is told that it has lost', () => {
  expect(newsOf(machine([]), machine([missing], { deletionTimestamp: 'now' }), [])).toEqual([]);
});

test('each problem is told once, and by nothing else', () => {
  const before = machine([condition('Ready', 'False', 'NotReady', '* Problem: old\n* NodeHealthy: x')]);
  const foreign = { ...waiting, message: 'new' };

  expect(newsOf(before, machine([foreign]), ['old', 'new'])).toEqual([
    { type: 'Warning', reason: 'Problem', message: 'new' },
  ]);
  expect(newsOf(before, machine([]), ['old'])).toEqual([]);
});
