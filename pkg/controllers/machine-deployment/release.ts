import { CONTROLLER_INDEX } from '../../operator/indexes/owner-index.ts';
import { requeue } from '../../work/reconcile/result.ts';
import { releaseSet } from '../replicas/release.ts';
import { isFreezeMarked, deploymentFreeze, setFreeze } from '../replicas/freeze-marks.ts';
import type { MachineDeploymentDeps } from './collaborators.ts';
import type { DeploymentStep } from './pass.ts';

/**
 * Ends the freeze of a MachineDeployment and of its sets, whoever began it, because its annotation asks for it. The sets come first: the
 * annotation is the only trace of the wish, and the overshoot safety freezes a MachineDeployment while one of its sets is frozen.
 */
export const release = (
  deps: Pick<MachineDeploymentDeps, 'machineSets' | 'brake' | 'writer' | 'setRecorder' | 'log'>,
): DeploymentStep => ({
  name: 'release',
  async run({ key, object: deployment, signal }) {
    const sets = deps.machineSets.byIndex(CONTROLLER_INDEX, deployment.metadata.uid);
    for (const set of sets.filter((one) => isFreezeMarked(setFreeze.marksOf(one)))) {
      await releaseSet({ ...deps, recorder: deps.setRecorder }, set, signal);
    }
    deps.brake.forget(deployment.metadata.uid);
    await deploymentFreeze.unfreeze(deps.writer, deployment, signal);
    if (isFreezeMarked(deploymentFreeze.marksOf(deployment))) {
      deps.log.info({ key }, 'unfroze a machine deployment on request');
    }
    return requeue(0, 'its release to be recorded');
  },
});
