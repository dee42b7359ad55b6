import { refOf } from '../apis/meta.ts';
import type { Pod } from '../apis/wire.ts';
import { pods } from '../kube/client/resource.ts';
import type { Target } from '../kube/targets/targets.ts';
import type { DrainLimits } from './limits.ts';
import { answerIn, type PodAnswer } from './answer.ts';

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
