import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { next } from '../../../work/reconcile/result.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { isAt } from './cursor.ts';

/**
 * Cordons a Node that registered after the deletion was requested, while the deletion of its VM is retried: no drain has seen it, and no pod is
 * to be started on it. The VM goes also where it cannot be cordoned.
 */
export const cordonLateNode = ({ cursor }: Pick<Collaborators, 'cursor'>): MachineStep => ({
  name: 'cordon-late-node',

  async run(ctx) {
    const { machine, nodes, signal, log } = ctx;
    if (!isAt(ctx, 'delete-vm') || nodes === undefined || cursor.isNodeAbandoned(ctx)) return next;
    for (const node of nodes.ofMachine(machine)) {
      if (!isLate(node, machine) || node.spec?.unschedulable === true) continue;
      const { name } = node.metadata;
      try {
        await nodes.cordon(node, signal);
        log.info({ node: name }, 'cordoned a node that registered late');
      } catch (err) {
        if (!(err instanceof ApiError)) throw err;
        log.debug({ node: name, err }, 'could not cordon a node that registered late');
      }
    }
    return next;
  },
});

function isLate(node: Node, { metadata: { deletionTimestamp } }: Machine): boolean {
  return deletionTimestamp !== undefined && node.metadata.creationTimestamp > deletionTimestamp;
}
