import { EXCLUDE_DETACH_ANNOTATION, EXCLUDE_DRAIN_ANNOTATION } from '../../api/keys.ts';
import { conditionOf } from '../../../../work/reconcile/conditions.ts';
import { next, type StepResult } from '../../../../work/reconcile/result.ts';
import type { MachinePass, ClusterAPIMachineStep } from '../machine-pass.ts';
import { DRAINING, started, timeLeftMs, waitsForFacts, type StartTime } from './waits.ts';

/** What ends the wait of who knows it already. */
const LET_GO = `To delete the Machine and its VM without a drain, set annotations ${EXCLUDE_DRAIN_ANNOTATION} and ${EXCLUDE_DETACH_ANNOTATION}`;
const OF_CLUSTER = 'Waiting for the cluster of its Node';

/** While it is not known which Node it is, nothing is drained and nothing deleted, however long it takes: unless somebody has said that it need not be cared for. */
export const decided: ClusterAPIMachineStep = {
  name: 'decided',
  run(pass) {
    const { node, machine } = pass;
    const { annotations } = machine.metadata;
    const isLetGo = [EXCLUDE_DRAIN_ANNOTATION, EXCLUDE_DETACH_ANNOTATION].every(
      (one) => annotations?.[one] !== undefined,
    );
    if (isLetGo || node.kind !== 'undecided') return next;
    return waitsForFacts(pass, DRAINING, `Waiting until its Node is known: ${node.problem}. ${LET_GO}`);
  },
};

/**
 * Whether there is a Node, as far as is known. Where the API server of its cluster has never answered anybody, none has joined. Nor is one expected
 * of a VM that was never provisioned once that cluster is lost: it may be what is to bring the API server back, and does not wait for it for ever.
 * Its kubelet may have joined all the same: what only keeps us from looking, such as a refused write or an invalid kubeconfig, is no reason.
 */
export function mayHaveNode({ node, machine: { status }, cluster }: MachinePass): boolean {
  if (node.kind !== 'unreachable') return node.kind === 'found';
  if (status.nodeRef !== undefined) return true;
  if (node.isLost && status.initialization?.infrastructureProvisioned !== true) return false;
  return conditionOf(cluster.status?.conditions, 'ControlPlaneInitialized')?.status !== 'False';
}

export interface UnreachedStep {
  readonly reason: string;
  readonly startTime: StartTime;
  /** Field of `spec.deletion`. */
  readonly timeout: 'nodeDrainTimeoutSeconds' | 'nodeVolumeDetachTimeoutSeconds';
}

/** Waits for the cluster of the Node for as long as the step may take: for ever unless the Machine says otherwise. */
export function awaitCluster(
  pass: MachinePass,
  why: string,
  { reason, startTime, timeout }: UnreachedStep,
  nowMs: number,
): StepResult {
  const seconds = pass.machine.spec.deletion?.[timeout];
  const since = started(pass, startTime, nowMs);
  const leftMs = timeLeftMs(since, seconds, nowMs);
  if (leftMs === 0) return next;
  if (leftMs !== undefined) pass.notes.alsoAfter(leftMs, timeout);
  const ends =
    leftMs !== undefined
      ? `The deletion continues ${seconds} s after ${since} (${timeout})`
      : `To end the wait, set ${timeout}`;
  const event = { type: 'Warning', reason: 'DrainBlocked', why: OF_CLUSTER } as const;
  return waitsForFacts(pass, reason, `${OF_CLUSTER}: ${why}. ${ends}`, { event });
}
