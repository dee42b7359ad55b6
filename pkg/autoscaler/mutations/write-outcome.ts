import { replicasOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { listedIn } from '../../controllers/machine-deployment/scaling/scaler-handoff.ts';

export interface UnansweredWrite {
  /** What it followed from; it carried this version. */
  readonly base: MachineDeployment;
  readonly replicas: number;
  /** What it added to the list of Machines that are to go. */
  readonly entries: readonly string[];
}

/**
 * What has become of it, by the MachineDeployment as it is now.
 *
 * | since then                                                | then |
 * |---|---|
 * | nothing has changed                                       | open: it may still arrive. The same write again cannot happen twice, both carry one version |
 * | something has, but not the spec                           | missed: it did not happen, and cannot any more |
 * | the Machines that it names are listed                     | done |
 * | one change of the spec, to the size that it asked for     | done: by this write, or as if by it |
 * | others                                                    | unknown |
 */
export type WriteOutcome = 'open' | 'missed' | 'done' | 'unknown';

export function writeOutcomeOf({ base, replicas, entries }: UnansweredWrite, now: MachineDeployment): WriteOutcome {
  if (now.metadata.uid !== base.metadata.uid) return 'unknown';
  if (now.metadata.resourceVersion === base.metadata.resourceVersion) return 'open';
  const changes = (now.metadata.generation ?? 0) - (base.metadata.generation ?? 0);
  if (changes === 0) return 'missed';
  const listed = new Set(listedIn(now));
  const isListed = entries.length > 0 && entries.every((entry) => listed.has(entry));
  return isListed || (changes === 1 && replicasOf(now) === replicas) ? 'done' : 'unknown';
}
