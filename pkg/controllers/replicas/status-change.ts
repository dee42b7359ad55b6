import { isDeepStrictEqual } from 'node:util';

import type { MergePatch } from '../../kube/client/patch.ts';

interface Observed {
  observedGeneration?: number | undefined;
}

/**
 * The members of a status that have to change, as a merge patch (null removes a member); undefined when the stored status already says
 * it all. Members that `wanted` does not name stay.
 */
export function statusChange<Status extends Observed>(
  stored: Status | undefined,
  wanted: Partial<Status>,
): MergePatch<Status> | undefined {
  const entries: [string, unknown][] = Object.entries(wanted);
  const change = Object.fromEntries(
    entries
      .filter(
        ([member, value]) => !isSame(stored?.[member as keyof Status], value) || isFirstCount(stored, wanted, value),
      )
      .map(([member, value]) => [member, Array.isArray(value) && value.length === 0 ? null : value]),
  );
  return Object.keys(change).length === 0 ? undefined : (change as MergePatch<Status>);
}

/** The first status tells of zeros too: a column without a value looks like a controller that does not work. */
function isFirstCount(stored: Observed | undefined, wanted: Partial<Observed>, value: unknown): boolean {
  return value === 0 && (stored?.observedGeneration ?? 0) === 0 && (wanted.observedGeneration ?? 0) > 0;
}

/** Zero values are written as nothing, or as null, by Go writers. */
function isSame(stored: unknown, wanted: unknown): boolean {
  return (isEmpty(stored) && isEmpty(wanted)) || isDeepStrictEqual(stored, wanted);
}

/** Whether a value is one that Go writers leave out. */
export function isEmpty(value: unknown): boolean {
  return (
    value === undefined || value === null || value === 0 || value === '' || (Array.isArray(value) && value.length === 0)
  );
}
