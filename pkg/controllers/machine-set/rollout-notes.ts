import { PREFER_NO_SCHEDULE_KEY, SCALE_UP_DISABLED_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { refOf } from '../../apis/meta.ts';
import { mergePatchIfUnchanged, type MergePatch } from '../../kube/client/patch.ts';
import { machineSets } from '../../kube/client/resource.ts';
import { ownerNameOf } from '../machine-facts/owners.ts';
import { next } from '../../work/reconcile/result.ts';
import type { MachineSetDeps } from './deps.ts';
import type { SetStep } from './pass.ts';

/**
 * What takes away the notes that a rollout has left on a set that no MachineDeployment owns any more; undefined when there are none. The
 * note of the taint says that it was a rollout that keeps the set from making up for lost Machines.
 */
export function leftRolloutNotes(set: MachineSet): MergePatch<MachineSet> | undefined {
  const { annotations, labels } = set.metadata;
  if (ownerNameOf(set, 'MachineDeployment') !== undefined || annotations?.[PREFER_NO_SCHEDULE_KEY] === undefined) {
    return undefined;
  }
  const isClosed = labels?.[SCALE_UP_DISABLED_LABEL] !== undefined;
  return {
    metadata: {
      annotations: { [PREFER_NO_SCHEDULE_KEY]: null },
      ...(isClosed && { labels: { [SCALE_UP_DISABLED_LABEL]: null } }),
    },
  };
}

/** Takes them away. */
export const rolloutNotes = ({ writer }: Pick<MachineSetDeps, 'writer'>): SetStep => ({
  name: 'rollout-notes',
  async run(pass) {
    const { object: set, signal } = pass;
    const change = leftRolloutNotes(set);
    if (change === undefined) return next;
    pass.object = await writer.patch('change', machineSets, refOf(set), mergePatchIfUnchanged(set, change), { signal });
    return next;
  },
});
