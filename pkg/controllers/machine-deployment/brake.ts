import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { keyOf } from '../../apis/meta.ts';
import { CREATION_LIMIT_REACHED, describeStop, isSpent, isStopped } from '../machine-set/creation-brake.ts';
import { reachedCreationLimit } from '../machine-set/events.ts';
import { freezeDeployment } from '../safety/overshoot/marks.ts';
import type { MachineDeploymentParts } from './parts.ts';
import { limitsOf } from './size-rule.ts';

/**
 * Freezes a MachineDeployment that has created more within a minute than anybody can want, by condition and label; returns whether
 * it did. Until somebody sets the annotation that releases it, neither it nor its sets create anything.
 */
export async function applyBrake(
  parts: Pick<MachineDeploymentParts, 'brake' | 'writer' | 'recorder' | 'clock' | 'log'>,
  deployment: MachineDeployment,
  signal: AbortSignal,
): Promise<boolean> {
  const { metadata, status } = deployment;
  const { replicas, surge } = limitsOf(deployment.spec);
  parts.brake.observe(metadata.uid, replicas, replicas + surge);
  const spending = parts.brake.spending(metadata.uid);
  if (!isSpent(spending) || isStopped(status?.conditions)) return false;

  const message = describeStop(`MachineDeployment ${metadata.name}`, spending);
  const cause = { reason: CREATION_LIMIT_REACHED, message } as const;
  await freezeDeployment(parts.writer, deployment, cause, parts.clock.now(), signal);
  parts.recorder.event(reachedCreationLimit(deployment, message));
  parts.log.warn({ key: keyOf(deployment), ...spending }, 'froze a machine deployment that created too much');
  return true;
}
