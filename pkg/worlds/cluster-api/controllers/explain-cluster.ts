import type { ClusterAPICluster } from '../api/cluster.ts';
import type { ClusterAPICondition } from '../api/condition.ts';
import { CLUSTER_FINALIZER, HAD_KUBECONFIG_ANNOTATION, KUBECONFIG_SECRET_SUFFIX } from '../api/keys.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import { hasFinalizer } from '../../../apis/finalizers.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { conditionOf } from '../../../work/reconcile/conditions.ts';
import { notReconciled, sentence } from './explain.ts';
import type { GivenExplanation } from '../../../fleet/describe/described-explanation.ts';

/** What is known beside a Cluster; unknown: who asks may not read it. */
export interface AroundCluster {
  readonly machines: readonly ClusterAPIMachine[] | 'unknown';
  /** Secret `<cluster>-kubeconfig`. */
  readonly kubeconfig: 'there' | 'missing' | 'unknown';
}

/** By reason of condition Deleting: what happens when that is over. */
const DELETION: Readonly<Record<string, string>> = {
  WaitingForWorkersDeletion:
    'Then its control plane and its infrastructure are deleted. Machines without an owner Cluster, or with another controller, must be deleted by their creator.',
  WaitingForControlPlaneDeletion: 'Then its infrastructure is deleted.',
  WaitingForInfrastructureDeletion: 'Then the Cluster is removed.',
};

type ClusterStatement = Omit<GivenExplanation, 'sinceMs'> & { readonly since: string | undefined };

/** Explains a Cluster of Cluster API as it was read at `nowMs` (ms since the epoch), with what is around it. */
export function explainClusterAPICluster(
  cluster: ClusterAPICluster,
  around: AroundCluster,
  nowMs: number,
): GivenExplanation {
  const { since, ...told } = stand(cluster, around);
  const fromMs = fromTimestamp(since);
  return { ...told, sinceMs: fromMs === undefined ? undefined : Math.max(0, nowMs - fromMs) };
}

function stand(cluster: ClusterAPICluster, around: AroundCluster): ClusterStatement {
  const { metadata } = cluster;
  const paused = conditionOf(cluster.status?.conditions, 'Paused');
  if (cluster.spec?.paused === true || paused?.status === 'True') {
    return {
      reason: 'Paused',
      message: 'The Cluster is paused.',
      waitingFor: 'the pause to end',
      nextStep:
        'Neither the Cluster nor its Machines are reconciled or deleted until spec.paused and the annotation are removed.',
      since: paused?.lastTransitionTime,
    };
  }
  const isHeld = hasFinalizer({ metadata }, CLUSTER_FINALIZER);
  if (!isHeld && !isBeingDeleted(cluster))
    return { ...notReconciled('Cluster', metadata), since: metadata.creationTimestamp };
  if (isBeingDeleted(cluster)) return deleting(cluster);
  return withoutKubeconfig(cluster, around) ?? waiting(cluster) ?? provisioned(cluster, around);
}

function deleting(cluster: ClusterAPICluster): ClusterStatement {
  const { deletionTimestamp, finalizers = [] } = cluster.metadata;
  const condition = conditionOf(cluster.status?.conditions, 'Deleting');
  const isTold = condition?.status === 'True';
  const message = isTold && condition.message !== '' ? condition.message : 'Cluster is being deleted';
  const held = finalizers.length === 0 ? undefined : `finalizers ${finalizers.join(', ')}`;
  return {
    reason: isTold ? condition.reason : 'Deleting',
    message: sentence(message),
    waitingFor: isTold && condition.message !== '' ? condition.message : held,
    nextStep:
      (isTold ? DELETION[condition.reason] : undefined) ??
      'The object is removed when its remaining finalizers are removed.',
    since: isTold ? condition.lastTransitionTime : deletionTimestamp,
  };
}

/** Its Machines wait for a Secret that it has had. */
function withoutKubeconfig(
  { metadata }: ClusterAPICluster,
  { kubeconfig }: AroundCluster,
): ClusterStatement | undefined {
  if (kubeconfig !== 'missing' || metadata.annotations?.[HAD_KUBECONFIG_ANNOTATION] === undefined) return undefined;
  const name = `${metadata.name}${KUBECONFIG_SECRET_SUFFIX}`;
  return {
    reason: 'KubeconfigMissing',
    message: `Secret ${name} is missing, which contains the kubeconfig for the Nodes of its Machines.`,
    waitingFor: `Secret ${name}`,
    nextStep: `Create it again: until then, its Machines are neither drained nor deleted. If the Nodes are in the target cluster of the manager, remove annotation ${HAD_KUBECONFIG_ANNOTATION}.`,
    since: undefined,
  };
}

function waiting(cluster: ClusterAPICluster): ClusterStatement | undefined {
  for (const [type, nextStep] of [
    [
      'InfrastructureReady',
      'Infrastructure providers create machines after the infrastructure of the Cluster is provisioned.',
    ],
    ['ControlPlaneInitialized', 'Bootstrap providers of workers may wait for it.'],
  ] as const) {
    const condition = conditionOf(cluster.status?.conditions, type);
    if (condition?.status !== 'True') return missing(type, condition, nextStep);
  }
  return undefined;
}

function missing(type: string, condition: ClusterAPICondition | undefined, nextStep: string): ClusterStatement {
  const message = condition?.message ?? '';
  return {
    reason: condition?.reason ?? 'NotReported',
    message: message === '' ? `Condition ${type} is not True.` : sentence(message),
    waitingFor: `condition ${type}`,
    nextStep,
    since: condition?.lastTransitionTime,
  };
}

function provisioned(cluster: ClusterAPICluster, { machines }: AroundCluster): ClusterStatement {
  const counts = machines === 'unknown' ? '' : `, with ${countOf(machines)}`;
  return {
    reason: 'Provisioned',
    message: `Cluster is provisioned${counts}.`,
    waitingFor: undefined,
    nextStep: 'Nothing.',
    since: conditionOf(cluster.status?.conditions, 'InfrastructureReady')?.lastTransitionTime,
  };
}

function countOf(machines: readonly ClusterAPIMachine[]): string {
  const running = machines.filter(({ status }) => status?.phase === 'Running').length;
  if (machines.length === 0) return 'no Machine';
  return `${machines.length === 1 ? '1 Machine' : `${machines.length} Machines`}, ${running} of them Running`;
}
