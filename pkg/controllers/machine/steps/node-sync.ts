import { NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { next } from '../../../reconcile/result.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import type { NodeAccess } from '../node-access.ts';
import { nodeChange } from '../node-template.ts';
import { phaseOf } from '../status.ts';

/**
 * Makes the Node show whose it is, and obey the machine's template: one strategic merge patch, and only when something is
 * missing. A Node that is being deleted, or is another machine's, is left alone.
 */
export const nodeSync: MachineStep = {
  name: 'node-sync',

  async run(ctx) {
    const { machine, nodes, signal, log } = ctx;
    const node = nodes?.get(machine.metadata.labels?.[NODE_LABEL] ?? '');
    if (nodes === undefined || node === undefined || phaseOf(machine) === '') return next;
    if (isBeingDeleted(node) || isContested(ctx, node)) return next;

    const change = nodeChange(machine, node);
    if (change === undefined) return next;
    if (change.taints === undefined) await nodes.patch(node, { metadata: change.metadata }, signal);
    else await patchWithTaints(ctx, nodes, node);
    log.info({ node: node.metadata.name }, 'applied the node template');
    return next;
  },
};

/** Taints are one list without merge key: a taint that somebody adds at the same moment must not be lost. */
async function patchWithTaints({ machine, signal }: MachineContext, nodes: NodeAccess, cached: Node): Promise<void> {
  const live = await nodes.read(cached.metadata.name, signal);
  if (live === undefined || live.metadata.uid !== cached.metadata.uid || isBeingDeleted(live)) return;
  const change = nodeChange(machine, live);
  if (change === undefined) return;
  const { metadata, taints } = change;
  const { resourceVersion } = live.metadata;
  const body = taints === undefined ? { metadata } : { metadata: { ...metadata, resourceVersion }, spec: { taints } };
  await nodes.patch(live, body, signal);
}

/** Two Machines that claim one Node would undo each other's labels for ever: the one that came first keeps it. */
function isContested({ machine, machines, log }: MachineContext, node: Node): boolean {
  const rivals = machines.byIndex('node', node.metadata.name);
  const first = rivals.find(({ metadata }) => isOlder(metadata, machine.metadata));
  if (first === undefined) return false;
  log.debug({ node: node.metadata.name, other: first.metadata.name }, 'left a node alone that another machine has');
  return true;
}

interface Age {
  readonly creationTimestamp: string;
  readonly name: string;
}

function isOlder(a: Age, b: Age): boolean {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp < b.creationTimestamp;
  return a.name < b.name;
}
