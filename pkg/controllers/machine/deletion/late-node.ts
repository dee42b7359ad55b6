import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { CORDON_MARK } from '../../../drain/cordon.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { next } from '../../../work/reconcile/result.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { isAt } from './cursor.ts';

const CORDON = { unschedulable: true };

/**
 * Cordons a Node that registered after the deletion was requested, while the deletion of its VM is retried: no drain has seen it, and no pod is
 * to be started on it. It is cordoned also where it cannot be marked, and the VM goes where it cannot be cordoned.
 */
export const cordonLateNode = ({ cursor }: Pick<Collaborators, 'cursor'>): MachineStep => ({
  name: 'cordon-late-node',

  async run(ctx) {
    const { machine, nodes, signal, log } = ctx;
    if (!isAt(ctx, 'delete-vm') || nodes === undefined || cursor.isNodeAbandoned(ctx)) return next;
    for (const node of nodes.ofMachine(machine)) {
      if (!isLate(node, machine) || node.spec?.unschedulable === true) continue;
      const marked = { metadata: { annotations: CORDON_MARK }, spec: CORDON };
      let err = await refusalOf(() => nodes.patch(node, marked, signal));
      if (err !== undefined && !signal.aborted)
        err = await refusalOf(() => nodes.patch(node, { spec: CORDON }, signal));
      const { name } = node.metadata;
      if (err === undefined) log.info({ node: name }, 'cordoned a node that registered late');
      else log.debug({ node: name, err }, 'could not cordon a node that registered late');
    }
    return next;
  },
});

async function refusalOf(patch: () => Promise<unknown>): Promise<ApiError | undefined> {
  try {
    await patch();
    return undefined;
  } catch (err) {
    if (err instanceof ApiError) return err;
    throw err;
  }
}

function isLate(node: Node, { metadata: { deletionTimestamp } }: Machine): boolean {
  return deletionTimestamp !== undefined && node.metadata.creationTimestamp > deletionTimestamp;
}
