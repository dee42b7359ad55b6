import { isForbiddenOrNotServed } from '../kube/client/errors.ts';

/** Whether a kind that is optional may be read now is asked so often at first, and so often in the end. */
export const OPTIONAL_FIRST_MS = 2_000;
const OPTIONAL_LONGEST_MS = 300_000;

/**
 * When to ask again for an optional kind after `pauseMs` and this answer: ever more rarely while it is refused. A server that does not answer
 * is asked often: when it is back work begins at once, and without the kind, such as NodeLabelPolicies, it would do what cannot be undone.
 */
export function pauseAfter(err: unknown, pauseMs: number): number {
  return isForbiddenOrNotServed(err) ? Math.min(2 * pauseMs, OPTIONAL_LONGEST_MS) : OPTIONAL_FIRST_MS;
}
