import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import { replicasOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { equalTemplate } from '../../../apis/machine/v1alpha1/template-equality.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { refOf } from '../../../apis/meta.ts';
import { isNotFound } from '../../../kube/client/errors.ts';
import type { Patch } from '../../../kube/client/patch.ts';
import { machineDeployments, machineSets } from '../../../kube/client/resource.ts';
import { adoptPatch, controllerReference, releasePatch } from '../../../work/reconcile/ownership.ts';
import { next } from '../../../work/reconcile/result.ts';
import { CONTROLLER_INDEX, NO_CONTROLLER } from '../../../operator/indexes/owner-index.ts';
import { mayAdopt } from '../../replicas/may-adopt.ts';
import { releasedMachines } from '../events.ts';
import type { Collaborators, DeploymentPass, DeploymentStep } from '../step.ts';
import { claimsOn } from './set-claims.ts';

type ClaimDeps = Pick<
  Collaborators,
  'machineSets' | 'machines' | 'reader' | 'writer' | 'recorder' | 'setRecorder' | 'changes'
>;

/** Adopts the sets that a MachineDeployment selects and nobody controls, and releases those that it no longer selects. */
export const claim = (deps: ClaimDeps): DeploymentStep => ({
  name: 'claim',
  async run(pass) {
    const { object: deployment, signal } = pass;
    const { adopt, release } = claimsOn(deployment, [
      ...deps.machineSets.byIndex(CONTROLLER_INDEX, deployment.metadata.uid),
      ...deps.machineSets.byIndex(CONTROLLER_INDEX, NO_CONTROLLER),
    ]);
    for (const set of release) await releaseSet(deps, pass, set);
    if (adopt.length === 0 || !(await mayAdopt(deps.reader, machineDeployments, deployment, signal))) return next;

    const reference = controllerReference(deployment, API_VERSION, 'MachineDeployment');
    for (const set of adopt) await patchSet(deps, pass, set, adoptPatch(set, reference));
    return next;
  },
});

/** Machines that go with it run on: anyone who changed the selector, or the set's labels, may not have meant that. */
async function releaseSet(deps: ClaimDeps, pass: DeploymentPass, set: MachineSet): Promise<void> {
  const { object: deployment } = pass;
  const { uid } = deployment.metadata;
  if (!(await patchSet(deps, pass, set, releasePatch(set, uid)))) return;
  const machines = deps.machines.byIndex(CONTROLLER_INDEX, set.metadata.uid).length;
  if (machines === 0) return;
  const release = { deployment, set, machines };
  deps.recorder.event(releasedMachines(deployment, release));
  deps.setRecorder.event(releasedMachines(set, release));
}

/** False when nothing was patched. That an empty set, as of the history, may not be changed keeps nobody from working. */
async function patchSet(
  { writer, machines, changes }: ClaimDeps,
  pass: DeploymentPass,
  set: MachineSet,
  patch: Patch,
): Promise<boolean> {
  const change = () => writer.patch('change', machineSets, refOf(set), patch, { signal: pass.signal });
  const isEmpty = replicasOf(set) === 0 && machines.byIndex(CONTROLLER_INDEX, set.metadata.uid).length === 0;
  // One of the present template has the name of the set that would be created in its place.
  const isHistory = isEmpty && !equalTemplate(set.spec.template, pass.object.spec.template);
  try {
    if (!isHistory) {
      await change();
      return true;
    }
    const { objects, text } = await changes.each(pass.key, [set], change);
    pass.refusal ??= text;
    return objects.length === 0;
  } catch (err) {
    if (isNotFound(err)) return false;
    throw err;
  }
}
