import { nodeNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { belongsTo } from '../../machine-facts/node-owner.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext } from '../context.ts';

/** When to look again after a live read that contradicts the cache: the watch delivers it soon. */
export const CATCH_UP_MS = 1_000;

/** What speaks against going on when the Node `isUnseen`. */
export const UNSEEN_NODE = 'the latest version of the Node';

export type LiveCheckDeps = Pick<Collaborators, 'machines' | 'readMachine'>;

/** What a live look found: what speaks against going on at once, or the machine's Node, if it has one. */
export type LiveCheck = { readonly doubt: string } | { readonly doubt: undefined; readonly node: Node | undefined };

/** Reads Machine and Node live, before a timeout makes the machine Failed: nothing is replaced because a cache is old. */
export async function liveCheck(
  { machines, readMachine }: LiveCheckDeps,
  { machine, observed, nodes, signal }: MachineContext,
): Promise<LiveCheck> {
  const name = nodeNameOf(machine);
  const [live, node] = await Promise.all([
    readMachine(observed, signal),
    name === '' ? undefined : nodes?.read(name, signal),
  ]);
  if (live === undefined || live.metadata.uid !== observed.metadata.uid || isBeingDeleted(live)) {
    return { doubt: 'the deletion to be recorded' };
  }
  if (live.metadata.resourceVersion !== observed.metadata.resourceVersion) {
    return { doubt: 'the latest version of the machine' };
  }
  return { doubt: undefined, node: node !== undefined && belongsTo(node, machine, machines) ? node : undefined };
}

/** Whether the cache does not show this Node as a live look has: its watch has stalled. */
export function isUnseen({ nodes }: Pick<MachineContext, 'nodes'>, node: Node | undefined): boolean {
  if (node === undefined) return false;
  return node.metadata.resourceVersion !== nodes?.get(node.metadata.name)?.metadata.resourceVersion;
}
