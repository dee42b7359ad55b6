import { conditionOf } from '../../../apis/cluster-api/condition.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { next } from '../../../reconcile/result.ts';
import type { DrainedMachine } from '../../machines/pod-rules.ts';
import type { MachinePass, MachineStep } from '../machine-pass.ts';
import { OF_PRE_TERMINATE } from './waits.ts';

/** A step that concerns the Node: skipped where there is none, or where it goes with its whole Cluster. */
export function ofNode(step: MachineStep): MachineStep {
  return {
    name: step.name,
    run: (pass) => (pass.node.kind !== 'found' || isBeingDeleted(pass.cluster) ? next : step.run(pass)),
  };
}

/** By what rules for drains tell Machines apart. */
export function drainedMachine({ machine, cluster }: MachinePass): DrainedMachine {
  return { labels: machine.metadata.labels, clusterLabels: cluster.metadata.labels };
}

/** Nobody reaches a Node whose machine is going. */
export function isTooLate({ infrastructure, machine, observed }: MachinePass): boolean {
  if (machine.status.deletion?.waitForPreTerminateHookStartTime !== undefined) return true;
  // The older version stores no such time.
  if (conditionOf(observed, 'Deleting')?.reason === OF_PRE_TERMINATE) return true;
  return infrastructure.kind !== 'found' || isBeingDeleted(infrastructure.external.object);
}
