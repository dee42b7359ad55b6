import { expect, test } from '@jest/globals';

import type { ClusterAPICluster, ClusterAPIClusterStatus } from '../api/cluster.ts';
import type { ClusterAPICondition } from '../api/condition.ts';
import { clusterEventsOf } from './cluster-events.ts';

const REFERENCE = { apiGroup: 'g', kind: 'Sim', name: 'i' };

const cluster = (status: ClusterAPIClusterStatus, more: object = {}): ClusterAPICluster => ({
  metadata: { name: 'c', namespace: 'ns', uid: 'u', resourceVersion: '1', creationTimestamp: '', ...more },
  spec: { infrastructureRef: REFERENCE, controlPlaneRef: { ...REFERENCE, kind: 'Plane' } },
  status,
});
const said = (
  type: string,
  status: ClusterAPICondition['status'],
  reason: string,
  message = '',
): ClusterAPIClusterStatus => ({
  conditions: [{ type, status, reason, message }],
});
const infrastructure = (
  status: ClusterAPICondition['status'],
  reason: string,
  message?: string,
): ClusterAPIClusterStatus => said('InfrastructureReady', status, reason, message);
const MACHINES = said('Deleting', 'True', 'WaitingForWorkersDeletion', 'Waiting for Machines to be deleted: a');
const REFUSAL = said('Deleting', 'True', 'WaitingForWorkersDeletion', 'Cannot delete Machine a: no');

test.each<{
  what: string;
  before?: ClusterAPIClusterStatus;
  after: ClusterAPIClusterStatus;
  refused?: Parameters<typeof clusterEventsOf>[2];
  told: readonly string[];
}>([
  { what: 'nothing', after: {}, told: [] },
  {
    what: 'a pause',
    before: said('Paused', 'False', 'NotPaused'),
    after: said('Paused', 'True', 'Paused'),
    told: ['Normal Paused The Cluster and its Machines are not reconciled or deleted'],
  },
  { what: 'a pause that goes on', before: said('Paused', 'True', 'x'), after: said('Paused', 'True', 'y'), told: [] },
  {
    what: 'infrastructure that is being made',
    after: infrastructure('False', 'NotReady', 'Sim i is not provisioned yet'),
    told: ['Normal InfrastructureNotReady NotReady: Sim i is not provisioned yet'],
  },
  {
    what: 'infrastructure that is still being made',
    before: infrastructure('False', 'NotReady', 'a'),
    after: infrastructure('False', 'NotReady', 'b'),
    told: [],
  },
  ...['ObjectDoesNotExist', 'ObjectDeleted', 'InternalError'].map((reason) => ({
    what: `infrastructure of which somebody has to take care: ${reason}`,
    before: infrastructure('True', 'Ready'),
    after: infrastructure(reason === 'InternalError' ? 'Unknown' : 'False', reason, 'm'),
    told: [`Warning InfrastructureNotReady ${reason}: m`],
  })),
  {
    what: 'infrastructure that is not ready any more, for the reason for which it was',
    before: infrastructure('True', 'Reported'),
    after: infrastructure('False', 'Reported'),
    told: ['Normal InfrastructureNotReady Reported'],
  },
  {
    what: 'what it has reached',
    before: infrastructure('False', 'NotReady'),
    after: {
      ...infrastructure('True', 'Ready'),
      initialization: { infrastructureProvisioned: true, controlPlaneInitialized: true },
    },
    told: [
      'Normal InfrastructureProvisioned Sim i is provisioned',
      'Normal ControlPlaneInitialized Plane i is initialized',
    ],
  },
  {
    what: 'what it has reached before',
    before: { initialization: { infrastructureProvisioned: true, controlPlaneInitialized: true } },
    after: { initialization: { infrastructureProvisioned: true, controlPlaneInitialized: true } },
    told: [],
  },
  {
    what: 'what its deletion waits for',
    after: MACHINES,
    told: ['Normal WaitingForWorkersDeletion Waiting for Machines to be deleted: a'],
  },
  {
    what: 'what it waits for next',
    before: MACHINES,
    after: said('Deleting', 'True', 'WaitingForInfrastructureDeletion', 'm'),
    told: ['Normal WaitingForInfrastructureDeletion m'],
  },
  { what: 'what it still waits for', before: REFUSAL, after: MACHINES, told: [] },
  {
    what: 'a deletion that is refused',
    before: MACHINES,
    after: REFUSAL,
    refused: 'since-now',
    told: ['Warning WaitingForWorkersDeletion Cannot delete Machine a: no'],
  },
  { what: 'a deletion that is still refused', before: MACHINES, after: REFUSAL, refused: 'yes', told: [] },
  {
    what: 'a deletion that another process has called refused',
    before: REFUSAL,
    after: REFUSAL,
    refused: 'since-now',
    told: [],
  },
  {
    what: 'what it waits for next, if that is refused',
    before: MACHINES,
    after: said('Deleting', 'True', 'WaitingForInfrastructureDeletion', 'm'),
    refused: 'yes',
    told: ['Warning WaitingForInfrastructureDeletion m'],
  },
])('of a Cluster is told $what: $told', ({ before = {}, after, refused = 'no', told }) => {
  const news = clusterEventsOf(cluster(before), cluster(after), refused);

  expect(news.map(({ type, reason, message }) => `${type} ${reason} ${message}`)).toEqual(told);
});

test('infrastructure of a Cluster that goes is to go, and one without infrastructure has reached nothing', () => {
  const going = cluster(infrastructure('False', 'ObjectDeleted'), { deletionTimestamp: 'now' });
  const bare = { ...cluster({ initialization: { infrastructureProvisioned: true } }), spec: {} };

  expect([going, bare].flatMap((one) => clusterEventsOf(cluster({}), one, 'no'))).toEqual([]);
});
