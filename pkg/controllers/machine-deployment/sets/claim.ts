import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { refOf } from '../../../apis/meta.ts';
import { ApiError, isNotFound } from '../../../kube/client/errors.ts';
import type { Patch } from '../../../kube/client/patch.ts';
import { machineDeployments, machineSets } from '../../../kube/client/resource.ts';
import { adoptPatch, controllerReference, releasePatch } from '../../../work/reconcile/ownership.ts';
import { next } from '../../../work/reconcile/result.ts';
import { CONTROLLER_INDEX, NO_CONTROLLER } from '../../../operator/indexes/owner-index.ts';
import { mayAdopt } from '../../replicas/may-adopt.ts';
import { releasedMachines } from '../events.ts';
import type { DeploymentStep, MachineDeploymentDeps } from '../step.ts';
import { claimsOn } from './set-claims.ts';

type ClaimDeps = Pick<
  MachineDeploymentDeps,
  'machineSets' | 'machines' | 'reader' | 'writer' | 'recorder' | 'setRecorder'
>;

/** Adopts the sets that a MachineDeployment selects and nobody controls, and releases those that it no longer selects. */
export const claim = (deps: ClaimDeps): DeploymentStep => ({
  name: 'claim',
  async run({ object: deployment, signal }) {
    const { adopt, release } = claimsOn(deployment, [
      ...deps.machineSets.byIndex(CONTROLLER_INDEX, deployment.metadata.uid),
      ...deps.machineSets.byIndex(CONTROLLER_INDEX, NO_CONTROLLER),
    ]);
    for (const set of release) await releaseSet(deps, deployment, set, signal);
    if (adopt.length === 0 || !(await mayAdopt(deps.reader, machineDeployments, deployment, signal))) return next;

    const reference = controllerReference(deployment, API_VERSION, 'MachineDeployment');
    for (const set of adopt) await patchSet(deps, set, adoptPatch(set, reference), signal);
    return next;
  },
});

/** Machines that go with it run on: anyone who changed the selector, or the set's labels, may not have meant that. */
async function releaseSet(
  deps: ClaimDeps,
  deployment: MachineDeployment,
  set: MachineSet,
  signal: AbortSignal,
): Promise<void> {
  const { uid } = deployment.metadata;
  if (!(await patchSet(deps, set, releasePatch(set, uid), signal))) return;
  const machines = deps.machines.byIndex(CONTROLLER_INDEX, set.metadata.uid).length;
  if (machines === 0) return;
  const release = { deployment, set, machines };
  deps.recorder.event(releasedMachines(deployment, release));
  deps.setRecorder.event(releasedMachines(set, release));
}

/** False when there was nothing left to patch. */
async function patchSet({ writer }: ClaimDeps, set: MachineSet, patch: Patch, signal: AbortSignal): Promise<boolean> {
  try {
    await writer.patch('change', machineSets, refOf(set), patch, { signal });
    return true;
  } catch (err) {
    if (!isNotFound(err) && !ApiError.is(err, 'Invalid')) throw err;
    return false;
  }
}
