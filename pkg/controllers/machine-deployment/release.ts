import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { keyOf } from '../../apis/meta.ts';
import { CONTROLLER_INDEX } from '../../indexes/owner-index.ts';
import { releaseSet } from '../replicas/release.ts';
import { isMarked, marksOfDeployment, marksOfSet, unfreezeDeployment } from '../replicas/freeze-marks.ts';
import type { MachineDeploymentParts } from './parts.ts';

/**
 * Ends the freeze of a MachineDeployment and of its sets, whoever began it, because its annotation asks for it. The sets come first: the
 * annotation is the only trace of the wish, and the overshoot safety freezes a MachineDeployment while one of its sets is frozen.
 */
export async function releaseDeployment(
  parts: Pick<MachineDeploymentParts, 'machineSets' | 'brake' | 'writer' | 'setRecorder' | 'log'>,
  deployment: MachineDeployment,
  signal: AbortSignal,
): Promise<void> {
  const sets = parts.machineSets.byIndex(CONTROLLER_INDEX, deployment.metadata.uid);
  for (const set of sets.filter((one) => isMarked(marksOfSet(one)))) {
    await releaseSet({ ...parts, recorder: parts.setRecorder }, set, signal);
  }
  parts.brake.forget(deployment.metadata.uid);
  await unfreezeDeployment(parts.writer, deployment, signal);
  if (!isMarked(marksOfDeployment(deployment))) return;
  parts.log.info({ key: keyOf(deployment) }, 'unfroze a machine deployment because its annotation asks for it');
}
