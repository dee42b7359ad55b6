import { isBeingDeleted } from '../../../apis/meta.ts';
import { next, waitFor } from '../../../work/reconcile/result.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { isManaged } from './lost-nodes.ts';

type Deps = Pick<Collaborators, 'lostNodes' | 'deleteMachine'>;

/**
 * Deletes the Machine of a Node that somebody deleted: our finalizer keeps such a Node until it is drained and its VM gone. One
 * that was deleted before or while it got our finalizer is gone by now; its Machine is deleted all the same. Any other Node with
 * our finalizer that vanished has lost it by force, or with its cluster's data: that is a matter of health.
 */
export const nodeDeleted = (deps: Deps): MachineStep => ({
  name: 'node-deleted',

  async run(ctx) {
    const { machine, observed, nodes, pass, log, signal } = ctx;
    const deleted = nodes?.ofMachine(machine).find((node) => isBeingDeleted(node) && isManaged(node));
    const name = deleted?.metadata.name ?? (await lostNodeOf(deps, ctx));
    if (name === undefined) return next;

    await deps.deleteMachine(observed, signal);
    log.info({ node: name }, 'deleted the machine of a deleted node');
    pass.event('NodeDeleted', `Node ${name} was deleted, so the machine is deleted too.`);
    return waitFor('the deletion to be recorded');
  },
});

/** The name of a Node whose deletion was seen; a live look has the last word. */
async function lostNodeOf(deps: Deps, { machine, nodes, signal }: MachineContext): Promise<string | undefined> {
  const lost = deps.lostNodes.of(machine);
  if (lost === undefined || nodes === undefined) return undefined;
  const live = await nodes.read(lost.name, signal);
  if (live?.metadata.uid !== lost.uid) return lost.name;
  deps.lostNodes.noteSeen(machine);
  return undefined;
}
