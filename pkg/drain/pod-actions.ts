import { refOf } from '../apis/meta.ts';
import type { Pod } from '../apis/wire.ts';
import { pods } from '../kube/client/resource.ts';
import type { Target } from '../kube/targets/targets.ts';
import type { DrainLimits } from './limits.ts';
import { GateClosedError } from '../kube/gate/gate.ts';
import { ApiError, isConflict, isNotFound, isTooManyRequests } from '../kube/client/errors.ts';

/** What a drain does to pods. Each names the pod by UID: another pod of that name is never touched. */
export interface PodActions {
  /** Evicts, with the pod's own grace unless another was asked for. Budgets are obeyed. */
  evict(pod: Pod, signal: AbortSignal): Promise<PodAnswer>;
  /** Deletes with grace 0, whatever budgets say. */
  kill(pod: Pod, signal: AbortSignal): Promise<PodAnswer>;
}

/** The actions on pods of `target`, within `limits`. They reject only with the signal's reason or a bug. With a grace, evictions ask for that one. */
export function createPodActions(
  target: Target,
  limits: DrainLimits,
  grace: { readonly gracePeriodSeconds?: number } = {},
): PodActions {
  const ask = async (pod: Pod, signal: AbortSignal, send: () => Promise<unknown>): Promise<PodAnswer> => {
    const verdict = await verdictFrom(() => limits.request(send, signal), signal);
    return verdict.kind === 'unclear' ? look(target, pod, verdict.message, signal) : verdict;
  };
  return {
    evict: (pod, signal) => ask(pod, signal, () => target.writer.evict(pod, { signal, ...grace })),
    kill: (pod, signal) =>
      ask(pod, signal, () =>
        target.writer.delete('destroy', pods, refOf(pod), { uid: pod.metadata.uid }, { gracePeriodSeconds: 0, signal }),
      ),
  };
}

/** After a conflict: gone if the name belongs to nobody or to another pod, else to be asked again. */
async function look(target: Target, pod: Pod, message: string, signal: AbortSignal): Promise<PodAnswer> {
  let isSame = true;
  const seen = await verdictFrom(async () => {
    const current = await target.reader.get(pods, refOf(pod), { signal });
    isSame = current.metadata.uid === pod.metadata.uid;
  }, signal);
  if (seen.kind !== 'accepted') return seen;
  return isSame ? { kind: 'failed', message } : { kind: 'gone' };
}

async function verdictFrom(send: () => Promise<unknown>, signal: AbortSignal): Promise<PodAnswer> {
  try {
    await send();
    return { kind: 'accepted' };
  } catch (err) {
    signal.throwIfAborted();
    return answerIn(err);
  }
}

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
  if (isNotFound(err) && !isBudgetGone(err)) return { kind: 'gone' };
  if (isConflict(err) || isBudgetGone(err)) return { kind: 'unclear', message: err.message };
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

/** An eviction fails so when a budget is deleted while the server writes it. */
function isBudgetGone(err: unknown): err is ApiError {
  return isNotFound(err) && err.status?.details?.kind === 'poddisruptionbudgets';
}

function isBudgetRefusal(err: ApiError): boolean {
  const causes = err.status?.details?.causes ?? [];
  return causes.some(({ reason }) => reason === BUDGET_CAUSE);
}
