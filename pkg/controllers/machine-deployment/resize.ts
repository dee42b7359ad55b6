import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { mergePatchIfUnchanged } from '../../kube/patch.ts';
import { machineSets } from '../../kube/resource.ts';
import { scaledSet } from './events.ts';
import { sizeNotes } from './new-set.ts';
import type { MachineDeploymentParts } from './parts.ts';
import type { Resizes } from './set-facts.ts';

/**
 * Writes new sizes to sets, each together with the notes of the replicas that it was scaled for; sets in `noted` get the
 * notes alone. A set that needs nothing is not written. Returns whether anything was. A set that changed since it was
 * looked at is a conflict: its size is decided anew.
 */
export async function resizeSets(
  { writer, recorder }: Pick<MachineDeploymentParts, 'writer' | 'recorder'>,
  deployment: MachineDeployment,
  sets: readonly MachineSet[],
  { sizes, noted = [] }: { sizes: Resizes; noted?: readonly string[] },
  signal: AbortSignal,
): Promise<boolean> {
  let hasWritten = false;
  for (const set of sets) {
    const { name, namespace, annotations } = set.metadata;
    const from = set.spec.replicas ?? 0;
    const to = sizes.get(name) ?? from;
    if (to === from && !noted.includes(name)) continue;

    const notes = Object.entries(sizeNotes(deployment)).filter(([key, value]) => annotations?.[key] !== value);
    if (to === from && notes.length === 0) continue;
    const patch = mergePatchIfUnchanged(set, {
      metadata: { annotations: Object.fromEntries(notes) },
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
