import { nodeNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { next, waitFor } from '../../../work/reconcile/result.ts';
import type { NodeAccess } from '../../machine-facts/node-access.ts';
import { deletionStageOf } from '../../machine-facts/deletion-stage.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { nodesOf } from './nodes.ts';
import { isAt } from './cursor.ts';

type Deps = Pick<Collaborators, 'machines' | 'cursor'>;

/**
 * Takes our finalizer from the machine's Nodes and deletes them: by name, by machine-name label and by provider id, so that
 * one that joined late goes too. A Node that the cache does not know is looked for live.
 */
export const deleteNode = (deps: Deps): MachineStep => ({
  name: 'delete-node',

  async run(ctx) {
    if (!isAt(ctx, 'delete-node')) return next;
    const { nodes, machine, observed, pass, signal } = ctx;
    // Just now the same was asked for the VM, unless this stage was taken over.
    const isTakenOver = deletionStageOf(observed) === 'delete-node';
    if (isTakenOver && !(await deps.cursor.isStillOurs(ctx, signal)))
      return waitFor('the latest version of the Machine');
    if (nodes !== undefined && deps.cursor.isNodeAbandoned(ctx)) {
      const name = nodeNameOf(machine);
      if (name !== '') pass.event('NodeLeftBehind', `Node ${name} was not deleted: its cluster is unreachable.`);
    } else if (nodes !== undefined) await remove(deps, ctx, nodes);
    // Nothing mirrors them any more.
    if ((machine.status.conditions ?? []).length > 0) machine.status.conditions = [];
    deps.cursor.advance(ctx, 'release-finalizer');
    return next;
  },
});

async function remove(deps: Deps, ctx: MachineContext, nodes: NodeAccess): Promise<void> {
  const { signal, log } = ctx;
  try {
    for (const node of await nodesOf(ctx, deps.machines, nodes)) {
      await nodes.remove(node, signal);
      log.info({ node: node.metadata.name }, 'deleted a node');
    }
  } catch (err) {
    if (!(err instanceof GateClosedError)) {
      deps.cursor.stay(
        ctx,
        'delete-node',
        `Could not delete the Node: ${err instanceof Error ? err.message : String(err)}.`,
      );
    }
    throw err;
  }
}
