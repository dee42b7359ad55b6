import { hasFinalizer } from '../../apis/finalizers.ts';
import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { isBeingDeleted, refOf } from '../../apis/meta.ts';
import { isNotFound } from '../../kube/errors.ts';
import { machineDeployments, machineSets } from '../../kube/resource.ts';
import { Finalizer } from '../../reconcile/finalizer.ts';
import { next, waitFor, type StepResult } from '../../reconcile/result.ts';
import { atOnce } from '../replicas/at-once.ts';
import { concernedTargets } from '../replicas/concerned-targets.ts';
import { CONTROLLER_INDEX } from '../../indexes/owner-index.ts';
import type { MachineDeploymentDeps } from './deps.ts';
import { claimedSets } from './world.ts';

/** The garbage collector's promise to take the owner references away, so that dependents stay (`--cascade=orphan`). */
const ORPHAN_FINALIZER = 'orphan';
/** How many sets are deleted at once. */
const DELETIONS_AT_ONCE = 10;

/**
 * Deletes the sets of a MachineDeployment that is being deleted, and lets it go (`next`) when none is left: first the
 * Machines vanish, then the sets, then the MachineDeployment. With `--cascade=orphan` its sets stay.
 */
export async function finishDeploymentDeletion(
  deps: Pick<MachineDeploymentDeps, 'machineSets' | 'machines' | 'targets' | 'writer'>,
  deployment: MachineDeployment,
  signal: AbortSignal,
): Promise<StepResult> {
  if (hasFinalizer(deployment, ORPHAN_FINALIZER)) return waitFor('its machine sets to be orphaned');

  const sets = claimedSets(deps, deployment);
  if (sets.length > 0) {
    const living = sets.filter((set) => !isBeingDeleted(set));
    await atOnce(DELETIONS_AT_ONCE, living, async ({ metadata }) => {
      const { uid, resourceVersion } = metadata;
      const clusters = concernedTargets(deps.targets, deps.machines.byIndex(CONTROLLER_INDEX, uid));
      try {
        const ref = refOf({ metadata });
        await deps.writer.delete('destroy', machineSets, ref, { uid, resourceVersion }, { signal, clusters });
      } catch (err) {
        if (!isNotFound(err)) throw err;
      }
    });
    return waitFor('its machine sets to be deleted');
  }
  await new Finalizer(deps.writer, machineDeployments, MACHINE_FINALIZER).remove(deployment, signal);
  return next;
}
