import { REVISION_ANNOTATION, REVISION_HISTORY_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { annotationsForSets } from './annotation-copies.ts';

/** So many earlier revisions are remembered; the original's list grows forever. */
const REMEMBERED_REVISIONS = 50;

type Annotated = Pick<MachineDeployment | MachineSet, 'metadata'>;

/** The revision of a set or MachineDeployment; 0 when it has none, or none that is a number. */
export function revisionOf({ metadata }: Annotated): number {
  const text = metadata.annotations?.[REVISION_ANNOTATION] ?? '';
  return /^\d+$/.test(text) ? Number(text) : 0;
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
    Object.entries(annotationsForSets(deployment)).filter(([key, value]) => present[key] !== value),
  );
  // That of the present template is one more than the highest old one.
  const [before, after] = [revisionOf(newSet), 1 + Math.max(0, ...oldSets.map(revisionOf))];
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
