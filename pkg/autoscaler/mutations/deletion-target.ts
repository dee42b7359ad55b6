import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { Membership, NodeIdentifier } from '../membership.ts';
import { parsePlaceholder } from '../placeholder.ts';
import type { DeletionTarget } from './delete-nodes.ts';

/**
 * Finds what a node stands for that is to be deleted from the group of this MachineDeployment, whose replicas without a Machine have these
 * places.
 */
export function deletionTargetOf(
  membership: Membership,
  { metadata }: MachineDeployment,
  named: NodeIdentifier,
  places: readonly string[],
): DeletionTarget {
  if (named.name === '' && named.providerId === '') return { node: '', kind: 'nameless' };
  const node = named.name === '' ? named.providerId : named.name;
  const placeholder = parsePlaceholder(named.providerId) ?? parsePlaceholder(named.name);
  if (placeholder?.kind === 'missing') {
    const { group, place } = placeholder;
    if (group !== metadata.name) return { node, kind: 'foreign' };
    return places.includes(place) ? { node, kind: 'missing', place } : { node, kind: 'gone' };
  }

  const machine = membership.machineOf(named);
  if (machine === undefined) return { node, kind: membership.isNode(named) ? 'unmanaged' : 'gone' };
  if (membership.deploymentOf(machine)?.metadata.uid !== metadata.uid) return { node, kind: 'foreign' };
  return { node, kind: 'machine', machine: machine.metadata.name, isPlaceholder: placeholder !== undefined };
}
