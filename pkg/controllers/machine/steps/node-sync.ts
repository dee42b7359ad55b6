import { LAST_APPLIED_CAPACITY_ANNOTATION, NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { next } from '../../../reconcile/result.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import type { NodeAccess } from '../node-access.ts';
import { capacityChange, type CapacityChange } from '../node-capacity.ts';
import { nodeChange, type NodeChange } from '../node-template.ts';

/**
 * Makes the Node show whose it is, obey the machine's template, and have its class's virtual capacity: one patch of the Node and
 * one of its status, and only when something is missing. A Node that is being deleted, or is another machine's, is left alone.
 */
export const nodeSync: MachineStep = {
  name: 'node-sync',

  async run(ctx) {
    const { machine, nodes, signal, log } = ctx;
    const node = nodes?.get(machine.metadata.labels?.[NODE_LABEL] ?? '');
    if (nodes === undefined || node === undefined || isBeingDeleted(node) || isContested(ctx, node)) return next;

    const capacity = capacityChange(classOf(ctx), node);
    const change = changeOf(ctx, node, capacity);
    if (capacity?.capacity !== undefined) await nodes.patchStatus(node, { capacity: capacity.capacity }, signal);
    if (change === undefined) return next;
    // Before it is written: its deletion may be told before the answer comes.
    if (change.metadata['finalizers'] !== undefined) noteProtection(ctx, node);
    if (change.taints === undefined) await nodes.patch(node, { metadata: change.metadata }, signal);
    else await patchWithTaints(ctx, nodes, node, capacity);
    log.info({ node: node.metadata.name }, 'applied the node template');
    return next;
  },
};

function noteProtection({ machine, memory, clock }: MachineContext, { metadata: { uid } }: Node): void {
  memory.protectedNodes.set(machine.metadata.uid, { uid, atMs: clock.monotonicMs() });
}

function classOf({ machine, classes }: MachineContext): MachineClass | undefined {
  return classes.get(`${machine.metadata.namespace ?? ''}/${machine.spec.class?.name ?? ''}`);
}

/** What the Node itself lacks, the record of its virtual capacity included. */
function changeOf(
  { machine }: MachineContext,
  node: Node,
  capacity: CapacityChange | undefined,
): NodeChange | undefined {
  const change = nodeChange(machine, node);
  if (capacity?.record === undefined) return change;
  const annotations = { ...(change?.metadata['annotations'] as object | undefined) };
  const recorded = { ...annotations, [LAST_APPLIED_CAPACITY_ANNOTATION]: capacity.record };
  return { taints: change?.taints, metadata: { ...change?.metadata, annotations: recorded } };
}

/** Taints are one list without merge key: a taint that somebody adds at the same moment must not be lost. */
async function patchWithTaints(
  ctx: MachineContext,
  nodes: NodeAccess,
  cached: Node,
  capacity: CapacityChange | undefined,
): Promise<void> {
  const { signal } = ctx;
  const live = await nodes.read(cached.metadata.name, signal);
  if (live === undefined || live.metadata.uid !== cached.metadata.uid || isBeingDeleted(live)) return;
  const change = changeOf(ctx, live, capacity);
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
