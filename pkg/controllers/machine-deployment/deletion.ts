import { hasFinalizer } from '../../apis/finalizers.ts';
import { isBeingDeleted, refOf } from '../../apis/meta.ts';
import { ignoreNotFound } from '../../kube/client/errors.ts';
import { machineSets } from '../../kube/client/resource.ts';
import { stop, waitFor } from '../../work/reconcile/result.ts';
import { atOnce } from '../replicas/at-once.ts';
import { concernedTargets } from '../replicas/concerned-targets.ts';
import type { Collaborators } from './collaborators.ts';
import type { DeploymentStep } from './pass.ts';

/** The garbage collector's promise to take the owner references away, so that dependents stay (`--cascade=orphan`). */
const ORPHAN_FINALIZER = 'orphan';
const DELETIONS_AT_ONCE = 10;

/**
 * Deletes the sets of a MachineDeployment that is being deleted, and lets it go when none is left: first the Machines vanish, then the sets,
 * then the MachineDeployment. With `--cascade=orphan` its sets stay.
 */
export const deletion = ({
  targets,
  writer,
  finalizer,
}: Pick<Collaborators, 'targets' | 'writer' | 'finalizer'>): DeploymentStep => ({
  name: 'deletion',
  async run({ object: deployment, observed: { sets, machinesOf }, signal }) {
    if (!finalizer.holds(deployment)) return stop;
    if (hasFinalizer(deployment, ORPHAN_FINALIZER)) return waitFor('its machine sets to be orphaned');
    if (sets.length === 0) {
      await finalizer.remove(deployment, signal);
      return stop;
    }
    const living = sets.filter((set) => !isBeingDeleted(set));
    await atOnce(DELETIONS_AT_ONCE, living, async (set) => {
      const { uid, resourceVersion } = set.metadata;
      const options = { signal, clusters: concernedTargets(targets, machinesOf(set)) };
      await writer.delete('destroy', machineSets, refOf(set), { uid, resourceVersion }, options).catch(ignoreNotFound);
    });
    return waitFor('its machine sets to be deleted');
  },
});
