import { isBeingDeleted } from '../../../../apis/meta.ts';
import type { Node } from '../../../../apis/wire.ts';
import { conditionOf } from '../../../../work/reconcile/conditions.ts';
import { next } from '../../../../work/reconcile/result.ts';
import type { DrainedMachine } from '../../../../controllers/machine-facts/pod-rules.ts';
import type { MachinePass, ClusterAPIMachineStep } from '../machine-pass.ts';
import { OF_PRE_TERMINATE } from './waits.ts';

/** A step that concerns the Node: skipped where that is not cared for. */
export function ofNode(step: ClusterAPIMachineStep): ClusterAPIMachineStep {
  return {
    name: step.name,
    run: (pass) => (pass.care === 'cared-for' ? step.run(pass) : next),
  };
}

/** By what rules for drains tell Machines apart. */
export function drainedMachine({ machine, cluster }: MachinePass): DrainedMachine {
  return {
    namespace: machine.metadata.namespace,
    labels: machine.metadata.labels,
    clusterLabels: cluster.metadata.labels,
  };
}

/** Nobody reaches a Node whose machine is going. */
export function isTooLate({ infrastructure, machine, observed }: MachinePass): boolean {
  if (machine.status.deletion?.waitForPreTerminateHookStartTime !== undefined) return true;
  // The older version stores no such time.
  if (conditionOf(observed.status?.conditions, 'Deleting')?.reason === OF_PRE_TERMINATE) return true;
  return infrastructure.kind !== 'found' || isBeingDeleted(infrastructure.external.object);
}

/** Whether the kubelet of a Node does not answer: nobody ends its Pods, and nobody takes its volumes off. */
export function isUnreachable({ status }: Node): boolean {
  return conditionOf(status?.conditions, 'Ready')?.status === 'Unknown';
}
