import type { LastOperation } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Clock } from '../../../base/clock/clock.ts';
import { describeStage } from '../../machine-facts/deletion-stage.ts';
import { codeInDeletion, setOperation } from '../../machine-facts/status.ts';
import type { MachineContext, MachineNotes } from '../context.ts';
import { blockOf, describeProgress, blockReasonOf } from '../../../drain/progress-text.ts';
import type { DrainRecord } from './plan.ts';

/** The status tells of a drain's progress at most so often, unless its reason changes. */
export const PROGRESS_MS = 30_000;
/** A reason that has stood for less is not worth a write: most drains never come to tell one. */
export const STANDING_MS = 2_000;
/** Nor is one that changes back and forth told more often than this. */
const MIN_PAUSE_MS = 5_000;

/**
 * When the progress is to be told, in ms from now: soon when the reason is another one than was told, else 30 s after the last
 * time. Times are monotonic.
 */
export function nextReportInMs(record: DrainRecord, nowMs: number): number {
  const { progress, reportedReason = '', reportedMs = record.startedMs, reasonSinceMs = record.startedMs } = record;
  const isNewReason = progress !== undefined && blockReasonOf(progress) !== reportedReason;
  const dueMs = isNewReason
    ? Math.max(reasonSinceMs + STANDING_MS, record.reportedMs === undefined ? 0 : reportedMs + MIN_PAUSE_MS)
    : reportedMs + PROGRESS_MS;
  return Math.max(0, dueMs - nowMs);
}

/** Said of a drain that nothing forces, when it has taken longer than its timeout. */
export const DRAIN_TIMEOUT_EXCEEDED =
  'Drain timeout exceeded. The deletion policy does not allow deleting pods, so the drain continues.';

/**
 * Shows as the last operation of a machine which pods a running drain waits for and why, at a calm pace; with a code while it is blocked. It
 * has failed while a budget forbids every eviction: only then do the set and the MachineDeployment list it among their failed machines.
 */
export function reportProgress(
  deps: { readonly clock: Clock },
  { machine, pass }: MachineContext,
  type: NonNullable<LastOperation['type']>,
  state: RunningDrain,
): void {
  reportDrainProgress(deps, pass, state, {
    isSaid: (text) => describeStage('drain', text) === machine.status.lastOperation?.description,
    say(text, block) {
      const description = describeStage('drain', text);
      const errorCode = codeInDeletion(machine, block === undefined ? undefined : 'DrainBlocked');
      const hasFailed = state.isLate || block === 'misconfigured-disruption-budget';
      const operation = { type, state: hasFailed ? 'Failed' : 'Processing', description } as const;
      setOperation(machine, errorCode === undefined ? operation : { ...operation, errorCode }, deps.clock.now());
    },
  });
}

/** What somebody has to do something about before the drain goes on; undefined when nothing. */
type Block = ReturnType<typeof blockOf>;

interface RunningDrain {
  readonly record: DrainRecord | undefined;
  readonly isLate: boolean;
}

/** Says somewhere which pods a running drain waits for and why, when it is time to. */
export function reportDrainProgress(
  { clock }: { readonly clock: Clock },
  pass: Pick<MachineNotes, 'alsoAfter' | 'afterWrite'>,
  { record, isLate }: RunningDrain,
  { isSaid, say }: { isSaid: (text: string) => boolean; say: (text: string, block: Block) => void },
): void {
  if (record?.progress === undefined) return;
  const { progress, force, forceAtMs } = record;
  const told = describeProgress(progress, force === undefined ? forceAtMs : undefined);
  const text = isLate ? `${DRAIN_TIMEOUT_EXCEEDED} ${told}` : told;
  const nowMs = clock.monotonicMs();
  const waitMs = isSaid(text) ? PROGRESS_MS : nextReportInMs(record, nowMs);
  if (waitMs > 0) return pass.alsoAfter(waitMs, 'the pods to leave');

  say(text, blockOf(progress));
  pass.afterWrite(() => {
    record.reportedReason = blockReasonOf(progress);
    record.reportedMs = nowMs;
  });
}
