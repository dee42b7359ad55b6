import { MACHINE_NAME_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../apis/wire.ts';
import type { Lister } from '../../kube/cache/lister.ts';

/**
 * The Machines that a Node may concern: those whose label `node` names it, whose provider id it has, and whose name it shows.
 * Mostly one; none for a Node of nobody. `machines` needs MACHINE_INDEXES.
 */
export function machinesOfNode(machines: Lister<Machine>, node: Node): readonly Machine[] {
  const { name, labels } = node.metadata;
  const providerID = node.spec?.providerID ?? '';
  const shown = labels?.[MACHINE_NAME_LABEL] ?? '';
  const found = new Map<string, Machine>();
  const add = (machine: Machine): unknown => found.set(machine.metadata.uid, machine);
  machines.byIndex('node', name).forEach(add);
  if (providerID !== '') machines.byIndex('providerID', providerID).forEach(add);
  if (shown !== '') machines.byIndex('name', shown).forEach(add);
  return [...found.values()];
}
