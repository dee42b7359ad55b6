import type { DrainProgress } from '../../../drain/drain.ts';
import type { MachineContext } from '../context.ts';
import type { DrainRecord } from '../memory.ts';
import { setOperation } from '../status.ts';
import { describeProgress, isHeldUp, reasonOf } from './drain-text.ts';
import { drainDeadlineMs } from './force.ts';
import { describeStage } from './stage.ts';

/** The status tells of a drain's progress at most so often, unless its reason changes. */
export const PROGRESS_MS = 30_000;
/** A reason that has stood for less is not worth a write: most drains never come to tell one. */
const STANDING_MS = 2_000;
/** Nor is one that changes back and forth told more often than this. */
const LEAST_PAUSE_MS = 5_000;

/** Takes what a running drain reports; true when its reason is another one, so that a pass should look at it. */
export function noteProgress(record: DrainRecord, progress: DrainProgress, nowMs: number): boolean {
  const reason = reasonOf(progress);
  const isNew = reason !== reasonOf(record.progress ?? { remainingPods: 0, blocked: [] });
  record.progress = progress;
  if (isNew) record.reasonSinceMs = nowMs;
  return isNew;
}

/**
 * When the progress is to be told, in ms from now: soon when the reason is another one than was told, else 30 s after the last
 * time. Times are monotonic.
 */
export function tellInMs(record: DrainRecord, nowMs: number): number {
  const { progress, toldReason = '', toldMs = record.startedMs, reasonSinceMs = record.startedMs } = record;
  const isNewReason = progress !== undefined && reasonOf(progress) !== toldReason;
  const dueMs = isNewReason
    ? Math.max(reasonSinceMs + STANDING_MS, record.toldMs === undefined ? 0 : toldMs + LEAST_PAUSE_MS)
    : toldMs + PROGRESS_MS;
  return Math.max(0, dueMs - nowMs);
}

/** Tells on the Machine which pods a running drain waits for and why; what holds it up is an Event as well, once. */
export function showProgress(ctx: MachineContext, record: DrainRecord | undefined): void {
  const { machine, clock, pass, memory } = ctx;
  if (record?.progress === undefined) return pass.alsoAfter(PROGRESS_MS, 'the pods to leave');
  const { progress } = record;
  const deadlineMs = record.force === undefined ? drainDeadlineMs(ctx) : undefined;
  const description = describeStage('drain', describeProgress(progress, deadlineMs));
  const nowMs = clock.monotonicMs();
  const waitMs = description === machine.status.lastOperation?.description ? PROGRESS_MS : tellInMs(record, nowMs);
  if (waitMs > 0) return pass.alsoAfter(waitMs, 'the pods to leave');

  pass.alsoAfter(PROGRESS_MS, 'the pods to leave');
  setOperation(machine, { type: 'Delete', state: 'Processing', description }, clock.now());
  pass.afterWrite(() => {
    record.toldReason = reasonOf(progress);
    record.toldMs = nowMs;
  });
  if (isHeldUp(progress) && memory.isNews(machine.metadata.uid, `DrainBlocked ${reasonOf(progress)}`)) {
    pass.event('DrainBlocked', describeProgress(progress, deadlineMs));
  }
}
