import { NODE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { next, waitFor } from '../../../reconcile/result.ts';
import type { MachineStep } from '../context.ts';

/**
 * Deletes the Machine of a Node that somebody deleted: our finalizer keeps such a Node until it is drained and its VM gone. A
 * Node that vanished without a deletion that we saw is a matter of health.
 */
export const nodeDeleted: MachineStep = {
  name: 'node-deleted',

  async run({ machine, observed, nodes, deleteMachine, pass, log, signal }) {
    const deleted = nodes
      ?.ofMachine(machine)
      .find((node) => isBeingDeleted(node) && node.metadata.finalizers?.includes(NODE_FINALIZER) === true);
    if (deleted === undefined) return next;

    await deleteMachine(observed, signal);
    log.info({ node: deleted.metadata.name }, 'deleted the machine of a deleted node');
    pass.event('NodeDeleted', `Node ${deleted.metadata.name} was deleted, so the machine is deleted too.`);
    return waitFor('the deletion to be seen');
  },
};
