import { nodeNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Node } from '../../../apis/wire.ts';
import type { NodeAccess } from '../../machine-facts/node-access.ts';
import { isRemovedWith, type MachineIndex } from '../../machine-facts/node-owner.ts';
import type { MachineContext } from '../context.ts';

/**
 * The Nodes of a machine that is being deleted. One that the cache does not know is looked for live: no pod is killed, and no Node left
 * behind, because a watch is late.
 */
export async function nodesOf(
  { machine, signal }: MachineContext,
  machines: MachineIndex,
  nodes: NodeAccess,
): Promise<readonly Node[]> {
  const cached = nodes.ofMachine(machine);
  const name = nodeNameOf(machine);
  if (cached.length > 0 || name === '' || nodes.get(name) !== undefined) return cached;
  const live = await nodes.read(name, signal);
  return live !== undefined && isRemovedWith(live, machine, machines) ? [live] : [];
}

/** The Node that this machine names, although it is not removed with it: it belongs to another one, or nobody can say to which. */
export async function foreignNode({ machine, signal }: MachineContext, nodes: NodeAccess): Promise<Node | undefined> {
  const name = nodeNameOf(machine);
  return name === '' ? undefined : (nodes.get(name) ?? (await nodes.read(name, signal)));
}

/** That of them which a drain empties: the one that the Machine names, else the first. */
export async function nodeToDrain(
  machines: MachineIndex,
  ctx: MachineContext,
  nodes: NodeAccess,
): Promise<Node | undefined> {
  const known = await nodesOf(ctx, machines, nodes);
  return known.find(({ metadata }) => metadata.name === nodeNameOf(ctx.machine)) ?? known[0];
}
