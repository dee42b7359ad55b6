import { revisionHistoryLimitOf, rollbackRevisionOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { isBeingDeleted, keyOf, refOf } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { ignoreNotFound } from '../../../kube/client/errors.ts';
import { machineSets } from '../../../kube/client/resource.ts';
import type { Collaborators, DeploymentPass } from '../step.ts';
import { revisionOf } from './revision.ts';
import type { Observed } from '../observed.ts';

/**
 * The old sets that are beyond the history limit: of the oldest ones too many, those that have, and want, no Machine. One that
 * is not empty yet still takes a place among them.
 */
export function setsToForget(
  { oldSets, machinesOf }: Pick<Observed, 'oldSets' | 'machinesOf'>,
  limit: number | null | undefined,
): MachineSet[] {
  if (limit === undefined || limit === null) return [];
  // Sets of the same second are told apart by revision; the sort is stable.
  const byRevision = oldSets.toSorted((a, b) => revisionOf(a) - revisionOf(b));
  const kept = byRevision.filter((set) => !isBeingDeleted(set)).toSorted((a, b) => createdMs(a) - createdMs(b));
  return kept.slice(0, Math.max(0, kept.length - limit)).filter((set) => isEmpty(set, machinesOf(set).length));
}

/** Deletes old sets beyond the history limit. That one of them, which is empty, may not be deleted keeps nobody from working. */
export async function cleanUpSets(
  { writer, changes }: Pick<Collaborators, 'writer' | 'changes'>,
  pass: Pick<DeploymentPass, 'key' | 'signal'> & {
    readonly observed: Pick<Observed, 'deployment' | 'oldSets' | 'machinesOf'>;
  },
): Promise<void> {
  const { key, observed, signal } = pass;
  await changes.each(key, beyondLimit(observed), async (set) => {
    const { uid, resourceVersion } = set.metadata;
    await writer.delete('destroy', machineSets, refOf(set), { uid, resourceVersion }, { signal }).catch(ignoreNotFound);
  });
}

/** Why an old set beyond the history limit could not be deleted, also in a pass that does not come to that. */
export function refusedCleanUp(
  { changes }: Pick<Collaborators, 'changes'>,
  observed: Pick<Observed, 'deployment' | 'oldSets' | 'machinesOf'>,
): string | undefined {
  return changes.among(keyOf(observed.deployment), beyondLimit(observed)).text;
}

/** None while a rollback is asked for: it may be to any of them. */
function beyondLimit(observed: Pick<Observed, 'deployment' | 'oldSets' | 'machinesOf'>): MachineSet[] {
  const { deployment } = observed;
  return rollbackRevisionOf(deployment) === undefined ? setsToForget(observed, revisionHistoryLimitOf(deployment)) : [];
}

function isEmpty({ metadata, spec, status }: MachineSet, existing: number): boolean {
  const isObserved = (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);
  return existing === 0 && (status?.replicas ?? 0) === 0 && (spec.replicas ?? 0) === 0 && isObserved;
}

function createdMs({ metadata }: MachineSet): number {
  return fromTimestamp(metadata.creationTimestamp) ?? 0;
}
