import type { Activity } from '../../../activity/activity.ts';
import type { DrainProgress } from '../../../drain/drain.ts';
import { isBlocked, mainHold, mainWait } from '../../../drain/progress-text.ts';
import { messageOf } from '../../../driver/errno.ts';
import { GateClosedError } from '../../../gate/gate.ts';
import type { EndedDrain, DeletionWait } from '../machine-pass.ts';

/** A drain that has ended, or failed. */
export type EndedActivity = Exclude<Activity<EndedDrain>, { readonly state: 'running' }>;

/** What a drain has left, or why it has failed, in words, and what is told of it. What was given up at a closed gate goes on by itself. */
export function describeDrainEnd(activity: EndedActivity): readonly [string, DeletionWait['event']] {
  if (activity.state === 'failed') {
    const why = messageOf(activity.error);
    const isGate = activity.error instanceof GateClosedError;
    return [`: ${why}`, isGate ? undefined : { type: 'Warning', reason: 'DrainBlocked', why }];
  }
  const { outcome } = activity.result;
  if (outcome.kind !== 'incomplete') return [': it no longer exists', undefined];
  return [`: ${describeRemainingPods(outcome.progress)}`, eventOf(outcome.progress)];
}

/** How many Pods are left, and what one of them waits for: `1 Pod is left; ns/a (waits for pods that go first)`. */
export function describeRemainingPods(progress: DrainProgress): string {
  const { remainingPods } = progress;
  const left = remainingPods === 1 ? '1 Pod is left' : `${remainingPods} Pods remain`;
  return [left, mainWait(progress)].filter((part) => part !== undefined).join('; ');
}

/** Pods that only take the time that they were given are no news. */
export function eventOf(progress: DrainProgress): DeletionWait['event'] {
  const why = mainHold(progress);
  return why === undefined
    ? undefined
    : { type: isBlocked(progress) ? 'Warning' : 'Normal', reason: 'DrainBlocked', why };
}
