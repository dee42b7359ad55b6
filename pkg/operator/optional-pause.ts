import { isForbiddenOrNotServed } from '../kube/client/errors.ts';

/** Whether a kind that is optional may be read now is asked so often at first, and so often in the end. */
export const OPTIONAL_FIRST_MS = 2_000;
const OPTIONAL_LONGEST_MS = 300_000;
/** The same of a kind that nobody does without: all work of its cluster is held meanwhile. */
export const NEEDED_LONGEST_MS = 30_000;

/**
 * When to ask again for a kind after `pauseMs` and this answer: ever more rarely, up to `longestMs`, while it is refused. A server that does not answer
 * is asked often: when it is back work begins at once, and without the kind, such as NodeLabelPolicies, it would do what cannot be undone.
 */
export function pauseAfter(err: unknown, pauseMs: number, longestMs: number = OPTIONAL_LONGEST_MS): number {
  return isForbiddenOrNotServed(err) ? Math.min(2 * pauseMs, longestMs) : OPTIONAL_FIRST_MS;
}
