import { hasFinalizer } from '../../apis/finalizers.ts';
import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import { machineSets } from '../../kube/resource.ts';
import { Finalizer } from '../../reconcile/finalizer.ts';
import { next, requeue, waitFor, type StepResult } from '../../reconcile/result.ts';
import { atOnce } from '../replicas/at-once.ts';
import { claimedMachines } from './claim.ts';
import type { MachineSetDeps } from './deps.ts';
import { deleteMachine, DELETIONS_A_PASS } from './scale-down.ts';
import { unseenCreations } from './unseen-creations.ts';

/** The garbage collector's promise to take the owner references away, so that dependents stay (`--cascade=orphan`). */
const ORPHAN_FINALIZER = 'orphan';
/** When to look again whether a POST without an answer has left a Machine behind. */
const UNSEEN_CHECK_MS = 5_000;

/**
 * Deletes the Machines of a set that is being deleted, and then lets the set go (`next`). Holding the set back until its
 * last Machine is gone keeps the garbage collector from deleting Machines whose owner has vanished. A frozen set is no
 * exception. With `--cascade=orphan` its Machines stay.
 */
export async function finishSetDeletion(
  deps: MachineSetDeps,
  set: MachineSet,
  signal: AbortSignal,
): Promise<StepResult> {
  if (hasFinalizer(set, ORPHAN_FINALIZER)) return waitFor('its machines to be orphaned');

  const claimed = claimedMachines(deps, set);
  if (claimed.length > 0) {
    const living = claimed.filter((machine) => !isBeingDeleted(machine));
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

  await new Finalizer(deps.writer, machineSets, MACHINE_FINALIZER).remove(set, signal);
  return next;
}
