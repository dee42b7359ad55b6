import { NODE_FINALIZER, NOT_MANAGED_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { next, waitFor } from '../../../reconcile/result.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { goesWith, type KnownMachines } from '../../machines/node-owner.ts';

/**
 * Deletes the Machine of a Node that somebody deleted: our finalizer keeps such a Node until it is drained and its VM gone. One
 * that was deleted before or while it got our finalizer is gone by now; its Machine is deleted all the same. Any other Node with
 * our finalizer that vanished has lost it by force, or with its cluster's data: that is a matter of health.
 */
export const nodeDeleted: MachineStep = {
  name: 'node-deleted',

  async run(ctx) {
    const { machine, observed, nodes, deleteMachine, pass, log, signal } = ctx;
    const deleted = nodes?.ofMachine(machine).find((node) => isBeingDeleted(node) && isManaged(node));
    const name = deleted?.metadata.name ?? (await lostNodeOf(ctx));
    if (name === undefined) return next;

    await deleteMachine(observed, signal);
    log.info({ node: name }, 'deleted the machine of a deleted node');
    pass.event('NodeDeleted', `Node ${name} was deleted, so the machine is deleted too.`);
    return waitFor('the deletion to be seen');
  },
};

/** A DELETE takes no longer at the API server than this, its `--request-timeout`. */
const REQUEST_TIMEOUT_MS = 60_000;

/**
 * Whether the deletion of a Node, last seen like this, was one of a Node of this machine that our finalizer did not keep: it was
 * not on it, or came `protectedForMs` ago, which a DELETE on its way does not notice: both succeed, and the Node is gone without
 * ever being marked as deleted (kubernetes/kubernetes#77988).
 */
export function wasUnprotected(node: Node, machine: Machine, machines: KnownMachines, protectedForMs: number): boolean {
  if (!isManaged(node) || isBeingDeleted(machine) || !goesWith(node, machine, machines)) return false;
  if (node.metadata.finalizers?.includes(NODE_FINALIZER) !== true) return true;
  return !isBeingDeleted(node) && protectedForMs < REQUEST_TIMEOUT_MS;
}

/** A Node of this Machine is gone, and was last seen like this: notes it for the step, unless our finalizer should have kept it. */
export function noteGoneNode(
  { machines, memory, clock }: Pick<MachineContext, 'clock' | 'machines' | 'memory'>,
  machine: Machine,
  node: Node,
): void {
  const { name, uid } = node.metadata;
  const protection = memory.protectedNodes.get(machine.metadata.uid);
  const protectedForMs = protection?.uid === uid ? clock.monotonicMs() - protection.atMs : Infinity;
  if (wasUnprotected(node, machine, machines, protectedForMs))
    memory.lostNodes.set(machine.metadata.uid, { name, uid });
}

function isManaged({ metadata }: Node): boolean {
  return metadata.annotations?.[NOT_MANAGED_ANNOTATION] === undefined;
}

/** The name of a Node whose deletion was seen; a live look has the last word. */
async function lostNodeOf({ machine, nodes, memory, signal }: MachineContext): Promise<string | undefined> {
  const lost = memory.lostNodes.get(machine.metadata.uid);
  if (lost === undefined || nodes === undefined) return undefined;
  const live = await nodes.read(lost.name, signal);
  if (live?.metadata.uid !== lost.uid) return lost.name;
  memory.lostNodes.delete(machine.metadata.uid);
  return undefined;
}
