import { expect, test } from '@jest/globals';

import type { ClusterAPICondition } from '../api/condition.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import { explainClusterAPIMachine, type ClusterLookup } from './explain.ts';

const THEN = '2026-01-01T00:00:00Z';
const SINCE = '2026-01-01T00:09:00Z';
const NOW_MS = Date.parse('2026-01-01T00:10:00Z');
const HELD = { finalizers: ['machine.cluster.x-k8s.io'] };

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
  lastTransitionTime: SINCE,
});
const GOOD = ['BootstrapConfigReady', 'InfrastructureReady', 'NodeReady', 'Ready', 'Available'].map((type) =>
  condition(type, 'True', type),
);
const but = (...others: readonly ClusterAPICondition[]): readonly ClusterAPICondition[] => [
  ...GOOD.filter(({ type }) => others.every((one) => one.type !== type)),
  ...others,
];
const cluster: KubeObject = { metadata: { name: 'c', uid: 'c', resourceVersion: '1', creationTimestamp: THEN } };

const explain = (
  conditions: readonly ClusterAPICondition[],
  metadata: object = HELD,
  known: ClusterLookup = cluster,
  deletion: object = {},
) => {
  const machine: ClusterAPIMachine = {
    metadata: { name: 'm', uid: 'm', resourceVersion: '1', creationTimestamp: THEN, ...metadata },
    spec: { clusterName: 'c', minReadySeconds: 90 },
    status: { conditions, nodeRef: { name: 'n' }, deletion },
  };
  return explainClusterAPIMachine(machine, known, NOW_MS);
};

test.each<{ what: string; got: ReturnType<typeof explain>; want: object }>([
  {
    what: 'nobody looks after',
    got: explain([], {}),
    want: {
      reason: 'NotLookedAt',
      waitingFor: 'a manager',
      sinceMs: 600_000,
      nextStep: expect.stringContaining('needs label cluster.x-k8s.io/watch-filter=x, which is missing.'),
    },
  },
  {
    what: 'nobody looks after, in a namespace, with a label',
    got: explain([], { namespace: 'ns', labels: { 'cluster.x-k8s.io/watch-filter': 'mine' } }),
    want: { nextStep: expect.stringMatching(/--namespace=ns, .*watch-filter=x; it has mine\.$/) },
  },
  {
    what: 'has no Cluster',
    got: explain([], HELD, 'missing'),
    want: { reason: 'ClusterMissing', waitingFor: 'Cluster c' },
  },
  {
    what: 'is paused',
    got: explain([condition('Paused', 'True', 'Paused', 'Cluster spec.paused is set to true')]),
    want: { reason: 'Paused', message: 'Cluster spec.paused is set to true.', waitingFor: 'the pause to end' },
  },
  {
    what: 'waits for its infrastructure',
    got: explain(but(condition('InfrastructureReady', 'False', 'NotReady', 'it is not provisioned yet'))),
    want: {
      reason: 'NotReady',
      message: 'it is not provisioned yet.',
      waitingFor: 'condition InfrastructureReady',
      sinceMs: 60_000,
    },
  },
  {
    what: 'has lost its Node',
    got: explain(but(condition('NodeReady', 'False', 'NodeDeleted', 'The Node was deleted: delete the Machine'))),
    want: { reason: 'NodeDeleted', nextStep: 'Delete the Machine: its Node is not looked up again.' },
  },
  {
    what: 'has a problem',
    got: explain(but(condition('Ready', 'False', 'NotReady', '* Problem: a\n* NodeHealthy: b'))),
    want: { reason: 'NotReady', message: 'Problem: a; NodeHealthy: b.', waitingFor: 'condition Ready' },
  },
  {
    what: 'has just become Ready',
    got: explain(but(condition('Available', 'False', 'WaitingForMinReadySeconds'))),
    want: { reason: 'Ready', waitingFor: 'being Ready for 90 s' },
  },
  {
    what: 'runs',
    got: explain(GOOD),
    want: { reason: 'Available', message: 'Machine runs as Node n.', waitingFor: undefined, nextStep: 'Nothing.' },
  },
  {
    what: 'is drained',
    got: explain(
      [condition('Deleting', 'True', 'DrainingNode', '2 Pods remain')],
      { ...HELD, deletionTimestamp: THEN },
      'unknown',
      { nodeDrainStartTime: SINCE },
    ),
    want: { reason: 'DrainingNode', message: '2 Pods remain.', waitingFor: '2 Pods remain', sinceMs: 60_000 },
  },
  {
    what: 'is held by our own hook',
    got: explain(
      [condition('Deleting', 'True', 'WaitingForPreTerminateHook', 'Waiting for hooks')],
      {
        ...HELD,
        deletionTimestamp: THEN,
        annotations: { 'pre-terminate.delete.hook.machine.cluster.x-k8s.io/machinist': '' },
      },
      cluster,
      { waitForPreTerminateHookStartTime: SINCE },
    ),
    want: {
      reason: 'WaitingForPreTerminateHook',
      nextStep: expect.stringMatching(/drains its Node first: kubectl delete machine\.machine\.sapcloud\.io m$/),
      sinceMs: 60_000,
    },
  },
  {
    what: "is held by somebody else's hook",
    got: explain([condition('Deleting', 'True', 'WaitingForPreTerminateHook', 'Waiting for hooks')], {
      ...HELD,
      deletionTimestamp: THEN,
      annotations: { 'pre-terminate.delete.hook.machine.cluster.x-k8s.io/other': '' },
    }),
    want: { nextStep: 'The infrastructure is deleted after the owners of these annotations have removed them.' },
  },
  {
    what: 'goes, and nobody says why not yet',
    got: explain([], { ...HELD, deletionTimestamp: THEN }),
    want: { reason: 'Deleting', waitingFor: 'finalizers machine.cluster.x-k8s.io', sinceMs: 600_000 },
  },
])('a Machine that $what is explained', ({ got, want }) => {
  expect(got).toMatchObject(want);
});
