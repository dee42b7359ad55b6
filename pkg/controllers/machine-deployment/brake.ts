import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { keyOf } from '../../apis/meta.ts';
import { next } from '../../work/reconcile/result.ts';
import { CREATION_LIMIT_REACHED, describeStop, isSpent } from '../replicas/creation-brake.ts';
import { reachedCreationLimit } from '../replicas/events.ts';
import { deploymentFreeze } from '../replicas/freeze-marks.ts';
import type { MachineDeploymentDeps } from './collaborators.ts';
import type { DeploymentStep } from './pass.ts';
import { rolloutLimitsOf } from '../replicas/limits.ts';

type Deps = Pick<MachineDeploymentDeps, 'machineDeployments' | 'brake' | 'writer' | 'recorder' | 'clock' | 'log'>;

/**
 * Freezes a MachineDeployment that has created more within a minute than anybody can want, by condition and label, and puts back a label
 * that somebody took away. Until its annotation releases it, neither it nor its sets create anything, whatever goes wrong.
 */
export const brake = (deps: Deps): DeploymentStep => ({
  name: 'brake',
  async run(pass) {
    const { key, object, signal } = pass;
    if (await applyBrake(deps, object, signal)) pass.object = deps.machineDeployments.get(key) ?? object;
    return next;
  },
});

/** Returns whether it wrote anything. */
async function applyBrake(deps: Deps, deployment: MachineDeployment, signal: AbortSignal): Promise<boolean> {
  const { metadata } = deployment;
  const { replicas, surge } = rolloutLimitsOf(deployment.spec);
  deps.brake.observe(metadata.uid, replicas, replicas + surge);
  const spending = deps.brake.spending(metadata.uid);
  const { isStopped, isLabelled } = deploymentFreeze.marksOf(deployment);
  if (isStopped) {
    if (isLabelled) return false;
    await deploymentFreeze.label(deps.writer, deployment, signal);
    deps.log.warn(
      { key: keyOf(deployment) },
      'restored the freeze label of a machine deployment that created too many machines',
    );
    return true;
  }
  if (!isSpent(spending)) return false;

  const message = describeStop(`MachineDeployment ${metadata.name}`, spending);
  const cause = { reason: CREATION_LIMIT_REACHED, message } as const;
  await deploymentFreeze.freeze(deps.writer, deployment, cause, deps.clock.now(), signal);
  deps.recorder.event(reachedCreationLimit(deployment));
  deps.log.warn({ key: keyOf(deployment), ...spending }, 'froze a machine deployment that created too many machines');
  return true;
}
