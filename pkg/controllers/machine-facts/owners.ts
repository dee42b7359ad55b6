import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { controllerOf, type KubeObject, type OwnerReference } from '../../apis/meta.ts';
import type { Lister } from '../../kube/cache/lister.ts';

/** What the owners of Machines are read from; undefined in a process that may not read them, or has not yet. */
export interface Owners {
  readonly sets?: Lister<MachineSet> | undefined;
  readonly deployments?: Lister<MachineDeployment> | undefined;
}

/** The name and UID by which an object refers to its controller, if that is one of our kinds. */
type OwnerName = Pick<OwnerReference, 'name' | 'uid'>;

/** The controller of an object, if it is of this kind. */
export function ownerNameOf(object: KubeObject, kind: 'MachineSet' | 'MachineDeployment'): OwnerName | undefined {
  const owner = controllerOf(object);
  return owner?.kind === kind && owner.apiVersion === API_VERSION ? owner : undefined;
}

/** The owner itself, if it is known and the very one that is meant. */
export function ownerIn<T extends KubeObject>(
  lister: Lister<T> | undefined,
  namespace: string,
  { name, uid }: OwnerName,
): T | undefined {
  const object = lister?.get(`${namespace}/${name}`);
  return object?.metadata.uid === uid ? object : undefined;
}

export function deploymentOf(machine: Machine, { sets, deployments }: Owners): MachineDeployment | undefined {
  const { namespace = '' } = machine.metadata;
  const setRef = ownerNameOf(machine, 'MachineSet');
  const set = setRef === undefined ? undefined : ownerIn(sets, namespace, setRef);
  const ref = set === undefined ? undefined : ownerNameOf(set, 'MachineDeployment');
  return ref === undefined ? undefined : ownerIn(deployments, namespace, ref);
}

/**
 * Whether no MachineDeployment owns the Machine, directly or as one of a set: its set is known to have none, or it has no set. False when the
 * set has not been seen.
 */
export function hasNoDeployment(machine: Machine, { sets }: Pick<Owners, 'sets'>): boolean {
  const { namespace = '' } = machine.metadata;
  const setRef = ownerNameOf(machine, 'MachineSet');
  if (setRef === undefined) return ownerNameOf(machine, 'MachineDeployment') === undefined;
  const set = ownerIn(sets, namespace, setRef);
  return set !== undefined && ownerNameOf(set, 'MachineDeployment') === undefined;
}
