import { LAST_SCALER_CHANGE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { mergePatchIfUnchanged } from '../../kube/patch.ts';
import { machineSets } from '../../kube/resource.ts';
import { scaledSet } from './events.ts';
import { sizeNotes } from './new-set.ts';
import type { MachineDeploymentParts } from './parts.ts';
import type { Resizes } from './set-facts.ts';
import type { World } from './world.ts';

/**
 * Writes new sizes to sets, each together with the notes of the replicas that it was scaled for; sets in `noted` get the
 * notes alone. A set that needs nothing is not written. Returns whether anything was. A set that changed since it was
 * looked at is a conflict: its size is decided anew.
 *
 * The new set gets the time of the autoscaler's change in the same write as its size: were it earlier, the set would delete
 * the chosen Machines and create others in their place before it learns that it has to shrink.
 */
export async function resizeSets(
  { writer, recorder }: Pick<MachineDeploymentParts, 'writer' | 'recorder'>,
  { deployment, newSet, oldSets }: Pick<World, 'deployment' | 'newSet' | 'oldSets'>,
  { sizes, noted = [] }: { sizes: Resizes; noted?: readonly string[] },
  signal: AbortSignal,
): Promise<boolean> {
  let hasWritten = false;
  for (const set of newSet === undefined ? oldSets : [newSet, ...oldSets]) {
    const { name, namespace } = set.metadata;
    const from = set.spec.replicas ?? 0;
    const to = sizes.get(name) ?? from;
    if (to === from && !noted.includes(name)) continue;

    const annotations = missingNotes(deployment, set, set === newSet);
    if (to === from && Object.keys(annotations).length === 0) continue;
    const patch = mergePatchIfUnchanged(set, {
      metadata: { annotations },
      ...(to === from ? {} : { spec: { replicas: to } }),
    });
    await writer.patch(to < from ? 'destroy' : 'change', machineSets, { namespace: namespace ?? '', name }, patch, {
      signal,
    });
    if (to !== from) recorder.event(scaledSet(deployment, name, from, to));
    hasWritten = true;
  }
  return hasWritten;
}

function missingNotes(deployment: MachineDeployment, set: MachineSet, isNew: boolean): Record<string, string> {
  const scalerTime = deployment.metadata.annotations?.[LAST_SCALER_CHANGE_ANNOTATION];
  const notes = {
    ...sizeNotes(deployment),
    ...(isNew && scalerTime !== undefined ? { [LAST_SCALER_CHANGE_ANNOTATION]: scalerTime } : {}),
  };
  return Object.fromEntries(Object.entries(notes).filter(([key, value]) => set.metadata.annotations?.[key] !== value));
}
