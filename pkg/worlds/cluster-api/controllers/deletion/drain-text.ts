import type { DrainProgress } from '../../../../drain/drain.ts';
import { isBlocked, mainHold, mainWait } from '../../../../drain/progress-text.ts';
import type { DeletionWait, DrainReport } from '../machine-pass.ts';

/** What a drain waits for, or has left. */
export function reportOf(progress: DrainProgress): DrainReport {
  return { text: `: ${describeRemainingPods(progress)}`, event: eventOf(progress) };
}

/** How many Pods are left, and what one of them waits for: `1 Pod is left; ns/a (waits for pods that go first)`. */
export function describeRemainingPods(progress: DrainProgress): string {
  const { remainingPods } = progress;
  const left = remainingPods === 1 ? '1 Pod is left' : `${remainingPods} Pods remain`;
  return [left, mainWait(progress)].filter((part) => part !== undefined).join('; ');
}

/** Pods that only take the time that they were given are no news. */
function eventOf(progress: DrainProgress): DeletionWait['event'] {
  const why = mainHold(progress);
  return why === undefined
    ? undefined
    : { type: isBlocked(progress) ? 'Warning' : 'Normal', reason: 'DrainBlocked', why };
}
