import { REVISION_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted, refOf } from '../../apis/meta.ts';
import { mergePatch, mergePatchIfUnchanged } from '../../kube/client/patch.ts';
import { machineDeployments, machineSets } from '../../kube/client/resource.ts';
import { next } from '../../work/reconcile/result.ts';
import type { MachineDeploymentDeps } from './collaborators.ts';
import { newSetChange } from './sets/new-set.ts';
import type { DeploymentStep } from './pass.ts';
import { isScalingEvent, scalingFactsOf } from './scaling/scaling.ts';

/** Brings what needs no rollout to the new set, and its revision back to the MachineDeployment. */
export const syncNewSet = ({ writer }: Pick<MachineDeploymentDeps, 'writer'>): DeploymentStep => ({
  name: 'new-set',
  async run(pass) {
    const { object: deployment, observed, signal } = pass;
    const { newSet, oldSets } = observed;
    if (newSet === undefined || isBeingDeleted(newSet)) return next;

    const change = newSetChange(deployment, newSet, oldSets, isScalingEvent(scalingFactsOf(observed)));
    if (change !== undefined) {
      const patch = mergePatchIfUnchanged(newSet, change);
      await writer.patch('change', machineSets, refOf(newSet), patch, { signal });
      return next;
    }
    const revision = newSet.metadata.annotations?.[REVISION_ANNOTATION];
    if (revision === undefined || revision === deployment.metadata.annotations?.[REVISION_ANNOTATION]) return next;
    const patch = mergePatch(deployment, { metadata: { annotations: { [REVISION_ANNOTATION]: revision } } });
    pass.object = await writer.patch('change', machineDeployments, refOf(deployment), patch, { signal });
    return next;
  },
});
