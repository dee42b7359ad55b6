import { GateClosedError } from '../kube/gate/gate.ts';
import { ApiError, isConflict, isNotFound, isTooManyRequests } from '../kube/client/errors.ts';

export type PodAnswer =
  /** It is ending, or has been deleted. */
  | { readonly kind: 'accepted' }
  /** It does not exist, or its name belongs to another pod. */
  | { readonly kind: 'gone' }
  /** A disruption budget forbids it now. */
  | { readonly kind: 'refused'; readonly message: string }
  /** Nobody knows, or the server could not; ask again, not before `retryAfterMs` if it says so. */
  | { readonly kind: 'failed'; readonly message: string; readonly retryAfterMs?: number }
  /** A precondition did not hold: only a live read tells whether the pod is another one now. */
  | { readonly kind: 'unclear'; readonly message: string };

/** Cause in a refused eviction's Status that tells a budget's refusal from an overloaded server's. */
const BUDGET_CAUSE = 'DisruptionBudget';

/** The verdict in an error of an eviction, a DELETE or a GET. Rethrows what is neither the API server's nor the gate's. */
export function answerIn(err: unknown): PodAnswer {
  if (isNotFound(err)) return { kind: 'gone' };
  if (isConflict(err)) return { kind: 'unclear', message: err.message };
  if (isTooManyRequests(err) && isBudgetRefusal(err)) return { kind: 'refused', message: err.message };
  if (err instanceof ApiError) {
    const { message, retryAfterMs } = err;
    return retryAfterMs === undefined ? { kind: 'failed', message } : { kind: 'failed', message, retryAfterMs };
  }
  // An outage or a missing proof of life passes. The fence may be closed for long, and open again: the drain begins anew then, so that no time
  // in which nothing could be sent counts as one in which pods were asked.
  if (err instanceof GateClosedError && err.reason !== 'fenced') return { kind: 'failed', message: err.message };
  throw err;
}

function isBudgetRefusal(err: ApiError): boolean {
  const causes = err.status?.details?.causes ?? [];
  return causes.some(({ reason }) => reason === BUDGET_CAUSE);
}
