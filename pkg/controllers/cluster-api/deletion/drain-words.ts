import type { Activity } from '../../../activity/activity.ts';
import type { DrainProgress } from '../../../drain/drain.ts';
import { isHeldUp, mainHold, mainWait, volumeWait } from '../../../drain/progress-text.ts';
import { GateClosedError } from '../../../gate/gate.ts';
import type { EndedDrain, Waiting } from '../machine-pass.ts';
import { messageOf, OF_VOLUMES } from './waits.ts';

/** A drain that has ended, or failed. */
export type EndedActivity = Exclude<Activity<EndedDrain>, { readonly state: 'running' }>;

/** What a drain has left, or why it has failed, in words, and what is told of it. What was given up at a closed gate goes on by itself. */
export function toldOfEnd(activity: EndedActivity): readonly [string, Waiting['event']] {
  if (activity.state === 'failed') {
    const why = messageOf(activity.error);
    const isGate = activity.error instanceof GateClosedError;
    return [`: ${why}`, isGate ? undefined : { type: 'Warning', reason: 'DrainBlocked', why }];
  }
  const { outcome } = activity.result;
  if (outcome.kind !== 'incomplete') return [': it is not there any more', undefined];
  return [`: ${describeProgress(outcome.progress)}`, eventOf(outcome.progress)];
}

/** How many Pods are left, and what one of them waits for: `1 Pod is left; ns/a (waits for pods that go first)`. */
export function describeProgress(progress: DrainProgress): string {
  const { remainingPods } = progress;
  const left = remainingPods === 1 ? '1 Pod is left' : `${remainingPods} Pods are left`;
  return [left, mainWait(progress)].filter((part) => part !== undefined).join('; ');
}

/** Pods that only take the time that they were given are no news; volumes go off by themselves, but that may take minutes. */
export function eventOf(progress: DrainProgress): Waiting['event'] {
  const ofVolumes = volumeWait(progress);
  if (ofVolumes !== undefined) return { type: 'Normal', reason: OF_VOLUMES, why: ofVolumes };
  const why = mainHold(progress);
  return why === undefined
    ? undefined
    : { type: isHeldUp(progress) ? 'Warning' : 'Normal', reason: 'DrainBlocked', why };
}
