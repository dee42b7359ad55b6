import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { controllerOf, keyOf } from '../../apis/meta.ts';
import { limitsOf } from '../machine-deployment/size-rule.ts';
import { CONTROLLER_INDEX } from './controller-index.ts';
import { isTerminating } from './machine-state.ts';
import type { MachineSetParts } from './parts.ts';

/** The Machines of one MachineDeployment, over all its sets. */
export interface Crowd {
  /** Replicas plus surge: how many there may be. */
  readonly allowed: number;
  /** How many are not on their way out. */
  readonly living: number;
  /** How many there are, those on their way out included. */
  readonly existing: number;
  /** Another set has Machines too. */
  readonly isRollout: boolean;
}

/**
 * How many Machines a set of a MachineDeployment may create now. Beyond replicas plus surge never any; and in a rollout those
 * that are still going count too, because they may hold the quota that the rollout was given.
 */
export function creationRoom({ allowed, living, existing, isRollout }: Crowd): number {
  return Math.max(0, allowed - (isRollout ? existing : living));
}

/** What `creationRoom` says of `set`, as the caches show it; without bound for a set that no MachineDeployment controls. */
export function roomFor(
  parts: Pick<MachineSetParts, 'machines' | 'machineSets' | 'machineDeployments'>,
  set: MachineSet,
): number {
  const deployment = deploymentOf(parts, set);
  if (deployment === undefined) return Infinity;
  const crowds = parts.machineSets
    .byIndex(CONTROLLER_INDEX, deployment.metadata.uid)
    .map((sibling) => ({ sibling, machines: parts.machines.byIndex(CONTROLLER_INDEX, sibling.metadata.uid) }));
  const all = crowds.flatMap(({ machines }) => machines);
  const { replicas, surge } = limitsOf(deployment.spec);
  return creationRoom({
    allowed: replicas + surge,
    living: all.filter((machine) => !isTerminating(machine)).length,
    existing: all.length,
    isRollout: crowds.some(({ sibling, machines }) => sibling.metadata.uid !== set.metadata.uid && machines.length > 0),
  });
}

function deploymentOf(
  { machineDeployments }: Pick<MachineSetParts, 'machineDeployments'>,
  set: MachineSet,
): MachineDeployment | undefined {
  const owner = controllerOf(set);
  if (owner?.kind !== 'MachineDeployment') return undefined;
  const key = keyOf({ metadata: { namespace: set.metadata.namespace ?? '', name: owner.name } });
  const deployment = machineDeployments.get(key);
  if (deployment?.metadata.uid !== owner.uid || (deployment.spec as unknown) === undefined) return undefined;
  return deployment;
}
