import type { ClusterAPICluster } from '../api/cluster.ts';
import { conditionOf } from '../../../work/reconcile/conditions.ts';
import type { PassEvent } from './machine-pass.ts';

/** Reasons of Events about Clusters, and of which types they are. */
export const CLUSTER_EVENTS = {
  Paused: ['Normal'],
  InfrastructureNotReady: ['Normal', 'Warning'],
  InfrastructureProvisioned: ['Normal'],
  ControlPlaneInitialized: ['Normal'],
  WaitingForWorkersDeletion: ['Normal', 'Warning'],
  WaitingForControlPlaneDeletion: ['Normal', 'Warning'],
  WaitingForInfrastructureDeletion: ['Normal', 'Warning'],
} as const satisfies Record<string, readonly PassEvent['type'][]>;

/** Reasons of condition InfrastructureReady for which somebody has to do something. */
const TROUBLE: readonly string[] = ['ObjectDoesNotExist', 'ObjectDeleted', 'InternalError'];

/** What a deletion waits for; its Events have the reasons of its condition. */
const DELETION_REASONS = [
  'WaitingForWorkersDeletion',
  'WaitingForControlPlaneDeletion',
  'WaitingForInfrastructureDeletion',
] as const;

/**
 * What is to be reported of a Cluster after its status was written: what it has reached, and what it waits for, once for each change of the
 * reason, and once more when its deletion begins to be refused.
 */
export function clusterEventsOf(
  before: ClusterAPICluster,
  after: ClusterAPICluster,
  refused: 'no' | 'yes' | 'since-now',
): readonly PassEvent[] {
  const isPaused = (cluster: ClusterAPICluster): boolean =>
    conditionOf(cluster.status?.conditions, 'Paused')?.status === 'True';
  return [
    ...(isPaused(after) && !isPaused(before)
      ? [normal('Paused', 'The Cluster and its Machines are not reconciled or deleted')]
      : []),
    ...infrastructureNews(before, after),
    ...reached(before, after),
    ...deletionNews(before, after, refused),
  ];
}

function infrastructureNews(before: ClusterAPICluster, after: ClusterAPICluster): readonly PassEvent[] {
  const [was, now] = [before, after].map((one) => conditionOf(one.status?.conditions, 'InfrastructureReady'));
  if (now === undefined || now.status === 'True' || after.metadata.deletionTimestamp !== undefined) return [];
  if (was?.reason === now.reason && was.status !== 'True') return [];
  const message = now.message === '' ? now.reason : `${now.reason}: ${now.message}`;
  return [{ type: TROUBLE.includes(now.reason) ? 'Warning' : 'Normal', reason: 'InfrastructureNotReady', message }];
}

/** Once only: neither is taken back. Without objects of providers there is nothing to reach. */
function reached(before: ClusterAPICluster, { spec, status }: ClusterAPICluster): readonly PassEvent[] {
  const { infrastructureProvisioned: wasProvisioned, controlPlaneInitialized: wasInitialized } =
    before.status?.initialization ?? {};
  const { infrastructureProvisioned, controlPlaneInitialized } = status?.initialization ?? {};
  const { infrastructureRef, controlPlaneRef } = spec ?? {};
  return [
    ...(infrastructureRef !== undefined && infrastructureProvisioned === true && wasProvisioned !== true
      ? [normal('InfrastructureProvisioned', `${infrastructureRef.kind} ${infrastructureRef.name} is provisioned`)]
      : []),
    ...(controlPlaneRef !== undefined && controlPlaneInitialized === true && wasInitialized !== true
      ? [normal('ControlPlaneInitialized', `${controlPlaneRef.kind} ${controlPlaneRef.name} is initialized`)]
      : []),
  ];
}

function deletionNews(
  before: ClusterAPICluster,
  after: ClusterAPICluster,
  refused: Parameters<typeof clusterEventsOf>[2],
): readonly PassEvent[] {
  const [was, now] = [before, after].map((one) => conditionOf(one.status?.conditions, 'Deleting'));
  const reason = DELETION_REASONS.find((one) => one === now?.reason);
  if (now?.status !== 'True' || reason === undefined) return [];
  const isKnown =
    was?.status === 'True' && was.reason === reason && (refused !== 'since-now' || was.message === now.message);
  return isKnown ? [] : [{ type: refused === 'no' ? 'Normal' : 'Warning', reason, message: now.message }];
}

function normal(reason: keyof typeof CLUSTER_EVENTS, message: string): PassEvent {
  return { type: 'Normal', reason, message };
}
