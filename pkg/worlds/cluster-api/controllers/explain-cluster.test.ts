import { expect, test } from '@jest/globals';

import type { ClusterAPICluster } from '../api/cluster.ts';
import type { ClusterAPICondition } from '../api/condition.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import { explainClusterAPICluster, type AroundCluster } from './explain-cluster.ts';

const THEN = '2026-01-01T00:00:00Z';
const SINCE = '2026-01-01T00:09:00Z';
const NOW_MS = Date.parse('2026-01-01T00:10:00Z');
const HELD = { finalizers: ['cluster.cluster.x-k8s.io'] };
const GOING = { ...HELD, deletionTimestamp: THEN };
const HAD = { ...HELD, annotations: { 'cluster-api.machine.sapcloud.io/had-kubeconfig': 'true' } };

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
const READY = condition('InfrastructureReady', 'True', 'Ready');
const GOOD = [READY, condition('ControlPlaneInitialized', 'True', 'Initialized')];
const machine = (phase: 'Running' | 'Pending'): ClusterAPIMachine => ({
  metadata: { name: phase, uid: phase, resourceVersion: '1', creationTimestamp: THEN },
  status: { phase },
});

const explain = (
  conditions: readonly ClusterAPICondition[],
  metadata: object = HELD,
  around: Partial<AroundCluster> = {},
  spec: ClusterAPICluster['spec'] = {},
) =>
  explainClusterAPICluster(
    {
      metadata: { name: 'c', namespace: 'ns', uid: 'u', resourceVersion: '1', creationTimestamp: THEN, ...metadata },
      spec,
      status: { conditions },
    },
    { machines: [], kubeconfig: 'missing', ...around },
    NOW_MS,
  );

test.each<{ what: string; got: ReturnType<typeof explain>; want: object }>([
  {
    what: 'nobody looks after',
    got: explain([], {}),
    want: {
      reason: 'NotLookedAt',
      sinceMs: 600_000,
      nextStep: expect.stringMatching(/--namespace=ns, .* the Cluster needs label .*=x, which is missing\.$/),
    },
  },
  {
    what: 'is paused, even if it goes',
    got: explain([condition('Paused', 'True', 'Paused')], GOING),
    want: { reason: 'Paused', waitingFor: 'the pause to end', sinceMs: 60_000 },
  },
  {
    what: 'is to be paused',
    got: explain(GOOD, HELD, {}, { paused: true }),
    want: { reason: 'Paused', sinceMs: undefined },
  },
  {
    what: 'waits for its infrastructure',
    got: explain([condition('InfrastructureReady', 'False', 'NotReady', 'Sim i is not provisioned yet')]),
    want: { reason: 'NotReady', message: 'Sim i is not provisioned yet.', waitingFor: 'condition InfrastructureReady' },
  },
  {
    what: 'waits for its control plane, of which nothing is said',
    got: explain([READY]),
    want: {
      reason: 'NotReported',
      message: 'Condition ControlPlaneInitialized is not True.',
      sinceMs: undefined,
    },
  },
  {
    what: 'is provisioned',
    got: explain(GOOD, HELD, { machines: [machine('Running'), machine('Pending')] }),
    want: {
      reason: 'Provisioned',
      message: 'Cluster is provisioned, with 2 Machines, 1 of them Running.',
      waitingFor: undefined,
      sinceMs: 60_000,
    },
  },
  { what: 'has no Machine', got: explain(GOOD), want: { message: 'Cluster is provisioned, with no Machine.' } },
  {
    what: 'has Machines that may not be read',
    got: explain(GOOD, HELD, { machines: 'unknown' }),
    want: { message: 'Cluster is provisioned.' },
  },
  {
    what: 'has lost its kubeconfig',
    got: explain(GOOD, HAD),
    want: { reason: 'KubeconfigMissing', waitingFor: 'Secret c-kubeconfig' },
  },
  ...(['there', 'unknown'] as const).map((kubeconfig) => ({
    what: `had a kubeconfig that is ${kubeconfig}`,
    got: explain(GOOD, HAD, { kubeconfig }),
    want: { reason: 'Provisioned' },
  })),
  {
    what: 'goes after its Machines',
    got: explain([condition('Deleting', 'True', 'WaitingForWorkersDeletion', 'Waiting for Machines: a')], GOING),
    want: {
      reason: 'WaitingForWorkersDeletion',
      message: 'Waiting for Machines: a.',
      waitingFor: 'Waiting for Machines: a',
      nextStep: expect.stringMatching(/^Then its control plane and its infrastructure are deleted\./),
      sinceMs: 60_000,
    },
  },
  {
    what: 'goes, and nobody says how',
    got: explain([], GOING),
    want: {
      reason: 'Deleting',
      message: 'Cluster is being deleted.',
      waitingFor: 'finalizers cluster.cluster.x-k8s.io',
      sinceMs: 600_000,
    },
  },
])('a Cluster that $what is explained', ({ got, want }) => {
  expect(got).toMatchObject(want);
});
