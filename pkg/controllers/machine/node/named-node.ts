import { nodeNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Node } from '../../../apis/wire.ts';
import { belongsTo, type MachineIndex } from '../../machine-facts/node-owner.ts';
import type { MachineContext } from '../context.ts';

/**
 * The Node that a Machine names: undefined when it names none, or there is no target cluster; `missing` when there is no such Node, or it
 * is another machine's.
 */
export type NamedNode = Node | 'missing' | undefined;

/** That Node, from the cache. */
export function namedNode(
  { machine, nodes }: Pick<MachineContext, 'machine' | 'nodes'>,
  machines: MachineIndex,
): NamedNode {
  const name = nodeNameOf(machine);
  if (nodes === undefined || name === '') return undefined;
  const node = nodes.get(name);
  return node !== undefined && belongsTo(node, machine, machines) ? node : 'missing';
}
