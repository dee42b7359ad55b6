import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { keyOf } from '../../apis/meta.ts';
import { CREATION_LIMIT_REACHED, describeStop, isSpent } from '../replicas/creation-brake.ts';
import { reachedCreationLimit } from '../replicas/events.ts';
import { freezeDeployment, labelDeployment, marksOfDeployment } from '../replicas/freeze-marks.ts';
import type { MachineDeploymentParts } from './parts.ts';
import { limitsOf } from '../replicas/limits.ts';

/**
 * Freezes a MachineDeployment that has created more within a minute than anybody can want, by condition and label, and puts back a label
 * that somebody took away; returns whether it did. Until its annotation releases it, neither it nor its sets create anything.
 */
export async function applyBrake(
  parts: Pick<MachineDeploymentParts, 'brake' | 'writer' | 'recorder' | 'clock' | 'log'>,
  deployment: MachineDeployment,
  signal: AbortSignal,
): Promise<boolean> {
  const { metadata } = deployment;
  const { replicas, surge } = limitsOf(deployment.spec);
  parts.brake.observe(metadata.uid, replicas, replicas + surge);
  const spending = parts.brake.spending(metadata.uid);
  const { isStopped, isLabelled } = marksOfDeployment(deployment);
  if (isStopped) {
    if (isLabelled) return false;
    await labelDeployment(parts.writer, deployment, signal);
    parts.log.warn(
      { key: keyOf(deployment) },
      'restored the freeze label of a machine deployment that created too much',
    );
    return true;
  }
  if (!isSpent(spending)) return false;

  const message = describeStop(`MachineDeployment ${metadata.name}`, spending);
  const cause = { reason: CREATION_LIMIT_REACHED, message } as const;
  await freezeDeployment(parts.writer, deployment, cause, parts.clock.now(), signal);
  parts.recorder.event(reachedCreationLimit(deployment));
  parts.log.warn({ key: keyOf(deployment), ...spending }, 'froze a machine deployment that created too much');
  return true;
}
