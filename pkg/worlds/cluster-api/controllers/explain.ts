import type { ClusterAPICluster } from '../api/cluster.ts';
import type { ClusterAPICondition } from '../api/condition.ts';
import { DELETION_HOOK, CLUSTER_API_MACHINE_FINALIZER, WATCH_FILTER_LABEL } from '../api/keys.ts';
import type { ClusterAPIMachine, ClusterAPIMachineStatus } from '../api/machine.ts';
import { hasFinalizer } from '../../../apis/finalizers.ts';
import { isBeingDeleted, type KubeObject } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import type { GivenExplanation } from '../../../fleet/describe/described-explanation.ts';

/** What is known of the Cluster that a Machine names: it, that there is none of its name, or nothing. */
export type ClusterLookup = ClusterAPICluster | 'missing' | 'unknown';

type MachineStatement = Omit<GivenExplanation, 'sinceMs'> & { readonly since: string | undefined };
type StartTime = keyof NonNullable<ClusterAPIMachineStatus['deletion']>;

/** By reason of condition Deleting: what happens when that is over, and when it began. */
const DELETION: Readonly<Record<string, { readonly next: string; readonly startTime?: StartTime }>> = {
  WaitingForPreDrainHook: {
    next: 'Its Node is drained after the owners of these annotations have removed them.',
    startTime: 'waitForPreDrainHookStartTime',
  },
  DrainingNode: {
    next: 'Then its volumes are detached, and the infrastructure is deleted.',
    startTime: 'nodeDrainStartTime',
  },
  WaitingForVolumeDetach: {
    next: 'The infrastructure is deleted after they are detached from the Node.',
    startTime: 'waitForNodeVolumeDetachStartTime',
  },
  WaitingForPreTerminateHook: {
    next: 'The infrastructure is deleted after the owners of these annotations have removed them.',
    startTime: 'waitForPreTerminateHookStartTime',
  },
  WaitingForInfrastructureDeletion: { next: 'Then the bootstrap object is deleted, and the Node.' },
  WaitingForBootstrapDeletion: { next: 'Then the Node is deleted.' },
  DeletingNode: { next: 'Then the Machine is removed.' },
};

/** What a Machine needs, in this order, and what comes when it is there. */
const NEEDS = {
  BootstrapConfigReady: 'The infrastructure provider creates the machine when its bootstrap data is available.',
  InfrastructureReady: 'The Node with the provider ID is looked up when the machine is created.',
  NodeReady: 'The Machine is Running when its Node has joined, and Ready when its Node is.',
} as const;

/** Some of it does not come by waiting. */
const REMEDIES: Readonly<Record<string, string>> = {
  ObjectDeleted: 'Delete the Machine: deleted objects are not created again.',
  NodeDeleted: 'Delete the Machine: its Node is not looked up again.',
  ConnectionDown: 'It continues when that cluster responds; until then nothing is drained or deleted.',
};

/** Explains a Machine of Cluster API as it was read at `nowMs` (ms since the epoch), with the Cluster that it names. */
export function explainClusterAPIMachine(
  machine: ClusterAPIMachine,
  cluster: ClusterLookup,
  nowMs: number,
): GivenExplanation {
  const { since, ...told } = stand(machine, cluster);
  const fromMs = fromTimestamp(since);
  return { ...told, sinceMs: fromMs === undefined ? undefined : Math.max(0, nowMs - fromMs) };
}

function stand(machine: ClusterAPIMachine, cluster: ClusterLookup): MachineStatement {
  const { metadata, spec, status } = machine;
  const find = (type: string): ClusterAPICondition | undefined => status?.conditions?.find((one) => one.type === type);
  const paused = find('Paused');
  if (paused?.status === 'True') {
    return {
      reason: 'Paused',
      message: sentence(paused.message),
      waitingFor: 'the pause to end',
      nextStep:
        'The object is not reconciled or deleted until spec.paused of the Cluster and the annotation are removed.',
      since: paused.lastTransitionTime,
    };
  }
  if (cluster === 'missing') {
    const name = spec?.clusterName ?? '';
    return {
      reason: 'ClusterMissing',
      message: `Cluster ${name} does not exist.`,
      waitingFor: `Cluster ${name}`,
      nextStep: 'Create the Cluster: without it, the object is not reconciled or deleted.',
      since: find('Ready')?.lastTransitionTime ?? metadata.creationTimestamp,
    };
  }
  const isHeld = hasFinalizer({ metadata }, CLUSTER_API_MACHINE_FINALIZER);
  if (!isHeld && !isBeingDeleted(machine)) {
    return { ...notReconciled('Machine', metadata), since: metadata.creationTimestamp };
  }
  if (isBeingDeleted(machine)) return deleting(machine, find('Deleting'));
  return waiting(find) ?? running(machine, find);
}

/** What is said of an object that no manager has touched. */
export function notReconciled(
  kind: 'Machine' | 'Cluster',
  metadata: KubeObject['metadata'],
): Omit<GivenExplanation, 'sinceMs'> {
  return {
    reason: 'NotLookedAt',
    message: `No controller has reconciled this ${kind} yet.`,
    waitingFor: 'a manager',
    nextStep: `Check that a controller is running: machinist run --controllers=*,cluster-api --namespace=${metadata.namespace ?? ''}, or the core of Cluster API. With --cluster-api-watch-filter=x, the ${kind} needs label ${WATCH_FILTER_LABEL}=x${filterOf(metadata)}.`,
  };
}

/** What it has now. */
function filterOf({ labels }: KubeObject['metadata']): string {
  const value = labels?.[WATCH_FILTER_LABEL];
  return value === undefined ? ', which is missing' : `; it has ${value}`;
}

function deleting(machine: ClusterAPIMachine, condition: ClusterAPICondition | undefined): MachineStatement {
  const { metadata, status } = machine;
  const { deletionTimestamp, finalizers = [] } = metadata;
  const isTold = condition?.status === 'True';
  const known = isTold ? DELETION[condition.reason] : undefined;
  const held = finalizers.length === 0 ? undefined : `finalizers ${finalizers.join(', ')}`;
  return {
    reason: isTold ? condition.reason : 'Deleting',
    message: isTold && condition.message !== '' ? sentence(condition.message) : 'Machine is being deleted.',
    waitingFor: known === undefined ? held : condition?.message,
    nextStep:
      ownHookRemedy(machine, known) ??
      known?.next ??
      'The object is removed when its remaining finalizers are removed.',
    since: (known?.startTime && status?.deletion?.[known.startTime]) ?? deletionTimestamp,
  };
}

/** Our own hook is not to be removed by hand: it holds the VM until the Node of its machine, which has the same name, is drained. */
function ownHookRemedy({ metadata }: ClusterAPIMachine, waitsFor: object | undefined): string | undefined {
  if (waitsFor !== DELETION['WaitingForPreTerminateHook'] || metadata.annotations?.[DELETION_HOOK] === undefined)
    return undefined;
  const command = `kubectl delete machine.machine.sapcloud.io ${metadata.name}`;
  return `Keep annotation ${DELETION_HOOK} and delete its machine, which drains its Node first: ${command}`;
}

function waiting(find: (type: string) => ClusterAPICondition | undefined): MachineStatement | undefined {
  const missing = Object.entries(NEEDS).find(([type]) => find(type)?.status !== 'True');
  if (missing === undefined) return undefined;
  const [type, next] = missing;
  const condition = find(type);
  const reason = condition?.reason ?? 'NotReported';
  const said = condition?.message ?? '';
  return {
    reason,
    message: said === '' ? `Condition ${type} is not True.` : sentence(said),
    waitingFor: `condition ${type}`,
    nextStep: REMEDIES[reason] ?? next,
    since: condition?.lastTransitionTime,
  };
}

function running(
  { status, spec }: ClusterAPIMachine,
  find: (type: string) => ClusterAPICondition | undefined,
): MachineStatement {
  const ready = find('Ready');
  const node = status?.nodeRef?.name ?? '';
  if (ready?.status !== 'True') {
    return {
      reason: ready?.reason ?? 'NotReady',
      message: sentence((ready?.message ?? '').replaceAll('\n', '; ').replaceAll('* ', '')),
      waitingFor: 'condition Ready',
      nextStep: 'It continues as soon as the problem is resolved.',
      since: ready?.lastTransitionTime,
    };
  }
  const isAvailable = find('Available')?.status === 'True';
  return {
    reason: isAvailable ? 'Available' : 'Ready',
    message: `Machine runs as Node ${node}.`,
    waitingFor: isAvailable ? undefined : `being Ready for ${spec?.minReadySeconds ?? 0} s`,
    nextStep: isAvailable ? 'Nothing.' : 'Then it is Available.',
    since: ready.lastTransitionTime,
  };
}

export function sentence(text: string): string {
  return text === '' || /[.!?]$/.test(text) ? text : `${text}.`;
}
