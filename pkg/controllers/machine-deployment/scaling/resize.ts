import { refOf } from '../../../apis/meta.ts';
import { LAST_SCALER_CHANGE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { mergePatchIfUnchanged } from '../../../kube/client/patch.ts';
import { machineSets } from '../../../kube/client/resource.ts';
import { concernedTargets } from '../../replicas/concerned-targets.ts';
import { scaledSet } from '../events.ts';
import { sizeNotes } from '../sets/new-set.ts';
import type { MachineDeploymentDeps } from '../step.ts';
import { scalerTimeFor } from './scaler-handoff.ts';
import type { Resizes } from '../sets/set-facts.ts';
import type { Observed } from '../observed.ts';

/**
 * Writes new sizes to sets, each together with the notes of the replicas that it was scaled for; sets in `noted` get the
 * notes alone. A set that needs nothing is not written. Returns whether anything was. A set that changed since it was
 * looked at is a conflict: its size is decided anew.
 *
 * A set is told of the autoscaler's change in the same write as its size: were it told earlier, it would delete the chosen
 * Machines and create others in their place before it learns that it has to shrink; were it told later, a crash in between
 * would make it shrink twice.
 *
 * `isCount`: the sizes follow Machines that have moved, and nothing is scaled: neither are replicas noted that have changed meanwhile, nor is a set
 * told of chosen Machines, whose replicas it does not give up. What they were moved from is written before what they were moved to. Should only the
 * first write succeed, nothing is deleted, also after a rollback: moved Machines that are not counted yet stay, and the set that lacks them has given
 * up their replicas.
 */
export async function resizeSets(
  { writer, recorder, targets }: Pick<MachineDeploymentDeps, 'writer' | 'recorder' | 'targets'>,
  observed: Pick<Observed, 'deployment' | 'newSet' | 'oldSets' | 'machinesOf' | 'untold'>,
  { sizes, noted = [], isCount = false }: { sizes: Resizes; noted?: readonly string[]; isCount?: boolean },
  signal: AbortSignal,
): Promise<boolean> {
  const { deployment, newSet, oldSets } = observed;
  let hasWritten = false;
  const sets = newSet === undefined ? oldSets : [newSet, ...oldSets];
  const shrinks = ({ metadata: { name }, spec }: MachineSet): boolean =>
    (sizes.get(name) ?? Infinity) < (spec.replicas ?? 0);
  const ordered = isCount ? sets.toSorted((a, b) => Number(shrinks(b)) - Number(shrinks(a))) : sets;
  for (const set of ordered) {
    const { name } = set.metadata;
    const from = set.spec.replicas ?? 0;
    const to = sizes.get(name) ?? from;
    if (to === from && !noted.includes(name)) continue;

    const annotations = isCount ? {} : missingNotes(observed, set);
    if (to === from && Object.keys(annotations).length === 0) continue;
    const patch = mergePatchIfUnchanged(set, {
      metadata: { annotations },
      ...(to === from ? {} : { spec: { replicas: to } }),
    });
    const isLoss = to < from || observed.untold(set).length > 0;
    const clusters = isLoss ? concernedTargets(targets, observed.machinesOf(set)) : [];
    await writer.patch(isLoss ? 'destroy' : 'change', machineSets, refOf(set), patch, { signal, clusters });
    if (to !== from) recorder.event(scaledSet(deployment, name, from, to));
    hasWritten = true;
  }
  return hasWritten;
}

function missingNotes({ deployment, newSet, untold }: Parameters<typeof resizeSets>[1], set: MachineSet): Notes {
  const chosen = untold(set);
  const isConcerned = set === newSet || chosen.length > 0;
  const scalerTime = isConcerned ? scalerTimeFor(deployment, set, chosen) : undefined;
  const notes = {
    ...sizeNotes(deployment),
    ...(scalerTime === undefined ? {} : { [LAST_SCALER_CHANGE_ANNOTATION]: scalerTime }),
  };
  return Object.fromEntries(Object.entries(notes).filter(([key, value]) => set.metadata.annotations?.[key] !== value));
}

type Notes = Record<string, string>;
