import { CREATION_SENT_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { wholeTimeoutMs } from '../../../driver/deadlines.ts';
import { DriverError } from '../../../driver/error.ts';
import type { MachineContext } from '../context.ts';
import { ANSWERED, SENT } from '../memory.ts';
import { creationTimeoutMsOf } from '../../machines/settings.ts';

/** A CreateMachine without answer may have made a VM that the provider does not show yet. */
const UNANSWERED_MS = 120_000;
/** Meanwhile it is looked for so often. */
const UNANSWERED_LOOK_MS = 15_000;

/** Where a second call could make a second VM, CreateMachine is on its way now: the process may die before the answer. */
export function noteSent({ machine, memory }: Pick<MachineContext, 'machine' | 'memory'>): void {
  memory.unanswered.set(machine.metadata.uid, SENT);
}

/**
 * Remembers that a CreateMachine which ended at `endedMs` (monotonic) had no answer. With a driver whose creation is idempotent
 * the next call finds what it made; with others the VM may show for two minutes yet.
 */
export function noteUnanswered(
  { machine, memory }: Pick<MachineContext, 'machine' | 'memory'>,
  error: unknown,
  endedMs: number,
): void {
  const { uid } = machine.metadata;
  if (error instanceof DriverError && error.unanswered) memory.unanswered.set(uid, endedMs + UNANSWERED_MS);
  else if (memory.unanswered.get(uid) === SENT) memory.unanswered.set(uid, ANSWERED);
}

/** Takes the annotation that told of the call off the copy, once its answer has come: nothing is missing any more. */
export function clearAnswered({ machine, memory }: Pick<MachineContext, 'machine' | 'memory'>): void {
  const { uid, annotations } = machine.metadata;
  if (memory.unanswered.get(uid) !== ANSWERED) return;
  const { [CREATION_SENT_ANNOTATION]: sent, ...others } = annotations ?? {};
  if (sent === undefined) memory.unanswered.delete(uid);
  else machine.metadata.annotations = others;
}

type Unanswered = Pick<MachineContext, 'machine' | 'memory' | 'clock' | 'settings'>;

/** Milliseconds after which to look again for the VM of a creation without answer; 0: none can show any more. */
export function unansweredLookMs(ctx: Unanswered): number {
  const { machine, memory, clock } = ctx;
  const untilMs = memory.unanswered.get(machine.metadata.uid) ?? recallUnanswered(ctx);
  return Math.max(0, Math.min(untilMs - clock.monotonicMs(), UNANSWERED_LOOK_MS));
}

/**
 * Until when (monotonic) the VM of a CreateMachine may show that another process has sent. That process has ended by now, or
 * gave the call up at its deadline, whichever was sooner.
 */
function recallUnanswered({ machine, memory, clock, settings }: Unanswered): number {
  const { uid, annotations } = machine.metadata;
  const sentMs = fromTimestamp(annotations?.[CREATION_SENT_ANNOTATION]);
  if (sentMs === undefined) return 0;
  const callMs = wholeTimeoutMs(creationTimeoutMsOf(machine, settings));
  const endedAgoMs = Math.max(0, clock.now() - (sentMs + callMs));
  const untilMs = clock.monotonicMs() + UNANSWERED_MS - endedAgoMs;
  memory.unanswered.set(uid, untilMs);
  return untilMs;
}
