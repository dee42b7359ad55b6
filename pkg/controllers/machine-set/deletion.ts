import { hasFinalizer } from '../../apis/finalizers.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import { next, requeue, stop, waitFor, type StepResult } from '../../work/reconcile/result.ts';
import { atOnce } from '../replicas/at-once.ts';
import { claimedMachines } from './claim.ts';
import type { Collaborators } from './deps.ts';
import type { SetPass, SetStep } from './pass.ts';
import { deleteMachine, DELETIONS_A_PASS } from './scale-down.ts';
import { unseenCreations } from './unseen-creations.ts';

/** The garbage collector's promise to take the owner references away, so that dependents stay (`--cascade=orphan`). */
const ORPHAN_FINALIZER = 'orphan';
/** When to look again whether a POST without an answer has left a Machine behind. */
const UNSEEN_CHECK_MS = 5_000;

type Deps = Parameters<typeof deleteMachine>[0] & Pick<Collaborators, 'finalizer' | 'expectations' | 'reader'>;

/**
 * Deletes the Machines of a set that is being deleted, and then lets the set go. Holding the set back until its last Machine is gone keeps
 * the garbage collector from deleting Machines whose owner has vanished. A frozen set is no exception. With `--cascade=orphan` its Machines
 * stay.
 */
export const deletion = (deps: Deps): SetStep => ({
  name: 'deletion',
  async run(pass) {
    try {
      return await finishDeletion(deps, pass);
    } catch (error) {
      pass.error = error;
      return next;
    }
  },
});

async function finishDeletion(deps: Deps, { object: set, machines, signal }: SetPass): Promise<StepResult> {
  if (!deps.finalizer.holds(set)) return stop;
  if (hasFinalizer(set, ORPHAN_FINALIZER)) return waitFor('its machines to be orphaned');

  if (machines.length > 0) {
    const living = machines.filter((machine) => !isBeingDeleted(machine));
    await atOnce(DELETIONS_A_PASS, living.slice(0, DELETIONS_A_PASS), (machine) =>
      deleteMachine(deps, set, { machine, reason: 'owner' }, signal),
    );
    return living.length > DELETIONS_A_PASS
      ? requeue(0, 'its machines to be deleted')
      : waitFor('its machines to be deleted');
  }
  if ((await unseenCreations(deps, set, signal)).length > 0) return requeue(UNSEEN_CHECK_MS, 'unanswered creations');
  // A live look may have found one.
  if (claimedMachines(deps, set).length > 0) return requeue(0, 'its machines to be deleted');

  await deps.finalizer.remove(set, signal);
  return stop;
}
