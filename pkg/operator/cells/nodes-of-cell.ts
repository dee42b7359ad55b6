import { nodeNameOf, providerIDOf, showsNode } from '../../apis/machine/v1alpha1/defaults.ts';
import { MACHINE_NAME_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../apis/wire.ts';
import { areOfOneScheme, isSameVM } from '../../apis/machine/v1alpha1/same-vm.ts';
import type { Lister } from '../../kube/cache/lister.ts';

/** Where the Nodes are that the Machines of a namespace show: in the target cluster at least one, or none of them. */
export type NodesOfCell = 'none' | 'here' | 'elsewhere';

/** Where the Nodes are that these Machines show, as far as the Nodes of the target cluster tell. */
export function whereNodesAre(machines: readonly Machine[], nodes: Pick<Lister<Node>, 'get'>): NodesOfCell {
  const joined = machines.filter(showsNode);
  if (joined.length === 0) return 'none';
  return joined.some((machine) => isNodeOf(nodes.get(nodeNameOf(machine) || machine.metadata.name), machine))
    ? 'here'
    : 'elsewhere';
}

/**
 * Clusters with equal address ranges have Nodes of equal names: one that does not show its Machine has to show its VM. Of one that does, the
 * provider ID may have another form.
 */
function isNodeOf(node: Node | undefined, machine: Machine): boolean {
  if (node === undefined) return false;
  const { providerID = '' } = node.spec ?? {};
  const recorded = providerIDOf(machine);
  const isItsVM = isSameVM(providerID, recorded);
  const says = node.metadata.labels?.[MACHINE_NAME_LABEL] ?? '';
  if (says === '') return isItsVM === true;
  return says === machine.metadata.name && (isItsVM !== false || !areOfOneScheme(providerID, recorded));
}
