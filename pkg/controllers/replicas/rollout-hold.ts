import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { equalTemplate } from '../../apis/machine/v1alpha1/template-equality.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { CONTROLLER_INDEX } from '../../operator/indexes/owner-index.ts';
import { deploymentOf, type Owners } from '../machine-facts/owners.ts';

/** Whether a set of another template still has Machines and is to keep some: while there is one, a rollout goes on. */
export function isActiveSet(set: MachineSet, machines: Pick<Lister<Machine>, 'byIndex'>): boolean {
  return (set.spec.replicas ?? 0) > 0 && machines.byIndex(CONTROLLER_INDEX, set.metadata.uid).length > 0;
}

/**
 * Whether the Machine is one of a MachineDeployment that is being rolled out, as far as this process knows: its Node is kept from the
 * autoscaler's scale-down until that is over. The MachineDeployment puts it on Nodes that are there, and takes it from all at the end; a
 * Node that joins gets it with whatever else it is given, which saves a write.
 */
export function joinsRollout(
  machine: Machine,
  { owners, machines }: { readonly owners: Owners; readonly machines: Pick<Lister<Machine>, 'byIndex'> },
): boolean {
  const deployment = deploymentOf(machine, owners);
  if (deployment === undefined || deployment.spec.paused === true || isBeingDeleted(deployment)) return false;
  const sets = owners.sets?.byIndex(CONTROLLER_INDEX, deployment.metadata.uid) ?? [];
  return sets.some((set) => isActiveSet(set, machines) && !equalTemplate(set.spec.template, deployment.spec.template));
}
