import {
  DELETION_POLICY_ANNOTATION,
  DESIRED_REPLICAS_ANNOTATION,
  FRONT_END_REPLICAS_ANNOTATION,
  LAST_APPLIED_CONFIGURATION_ANNOTATION,
  MAX_REPLICAS_ANNOTATION,
  PAUSED_BY_FRONT_END_ANNOTATION,
  PREFER_NO_SCHEDULE_KEY,
  REVISION_ANNOTATION,
  REVISION_HISTORY_ANNOTATION,
  TRIGGER_DELETION_ANNOTATION,
  UNFREEZE_ANNOTATION,
  UPDATE_ORDER_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';

/**
 * Annotations that belong to one object and are never copied between a MachineDeployment and its sets: nor does a rollback bring back
 * how machines were deleted, or whom rollouts waited for, when that revision was new.
 */
const NOT_COPIED: ReadonlySet<string> = new Set([
  LAST_APPLIED_CONFIGURATION_ANNOTATION,
  REVISION_ANNOTATION,
  REVISION_HISTORY_ANNOTATION,
  DESIRED_REPLICAS_ANNOTATION,
  MAX_REPLICAS_ANNOTATION,
  PREFER_NO_SCHEDULE_KEY,
  UNFREEZE_ANNOTATION,
  TRIGGER_DELETION_ANNOTATION,
  FRONT_END_REPLICAS_ANNOTATION,
  PAUSED_BY_FRONT_END_ANNOTATION,
  DELETION_POLICY_ANNOTATION,
  UPDATE_ORDER_ANNOTATION,
]);

/** So many earlier revisions are remembered; the original's list grows forever. */
const REMEMBERED_REVISIONS = 50;

type Annotated = Pick<MachineDeployment | MachineSet, 'metadata'>;

/** The annotations that travel between a MachineDeployment and its sets. */
export function copiedAnnotations({ metadata }: Annotated): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([key]) => !NOT_COPIED.has(key)));
}

/** The revision of a set or MachineDeployment; 0 when it has none, or none that is a number. */
export function revisionOf({ metadata }: Annotated): number {
  const text = metadata.annotations?.[REVISION_ANNOTATION] ?? '';
  return /^\d+$/.test(text) ? Number(text) : 0;
}

/** The revision that the set of the present template should have: one more than the highest old one. */
function nextRevision(oldSets: readonly MachineSet[]): number {
  return 1 + Math.max(0, ...oldSets.map(revisionOf));
}

/**
 * The annotations of the new set that have to change: those of the MachineDeployment are copied, the revision is raised but
 * never lowered, and the revision that it had before goes into its history. What the MachineDeployment no longer has stays.
 */
export function newSetAnnotations(
  deployment: MachineDeployment,
  newSet: Annotated,
  oldSets: readonly MachineSet[],
): Record<string, string> {
  const present = newSet.metadata.annotations ?? {};
  const changes = Object.fromEntries(
    Object.entries(copiedAnnotations(deployment)).filter(([key, value]) => present[key] !== value),
  );
  const [before, after] = [revisionOf(newSet), nextRevision(oldSets)];
  if (before >= after) return changes;

  const history = historyWith(present[REVISION_HISTORY_ANNOTATION], before);
  return {
    ...changes,
    [REVISION_ANNOTATION]: String(after),
    ...(history === undefined ? {} : { [REVISION_HISTORY_ANNOTATION]: history }),
  };
}

function historyWith(history: string | undefined, revision: number): string | undefined {
  if (revision === 0) return undefined;
  const earlier = (history ?? '').split(',').filter((entry) => entry !== '' && entry !== String(revision));
  return [...earlier, String(revision)].slice(-REMEMBERED_REVISIONS).join(',');
}
