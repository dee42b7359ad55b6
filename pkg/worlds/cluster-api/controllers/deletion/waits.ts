import type { ClusterAPICondition } from '../../api/condition.ts';
import type { ClusterAPIMachineStatus } from '../../api/machine.ts';
import { fromTimestamp, toTimestamp } from '../../../../base/clock/clock.ts';
import { conditionOf } from '../../../../work/reconcile/conditions.ts';
import { waitFor, type StepResult } from '../../../../work/reconcile/result.ts';
import type { MachinePass, ClusterAPIMachineStep, DeletionWait } from '../machine-pass.ts';
import { older } from '../older-conditions.ts';

/** How often a drain or volumes that are still attached are looked at again. */
export const DELETION_RECHECK_MS = 20_000;

/** Reason until the Node is empty. */
export const DRAINING = 'DrainingNode';

/** Reason while volumes are not off the Node. */
export const OF_VOLUMES = 'WaitingForVolumeDetach';

/** Reasons of condition Deleting while objects are being deleted. */
export const OF_INFRASTRUCTURE = 'WaitingForInfrastructureDeletion';
export const OF_BOOTSTRAP = 'WaitingForBootstrapDeletion';
export const OF_NODE = 'DeletingNode';

/** Reason while hooks hold the deletion of the infrastructure. */
export const OF_PRE_TERMINATE = 'WaitingForPreTerminateHook';

const AFTER_DRAIN: readonly string[] = [OF_PRE_TERMINATE, OF_INFRASTRUCTURE, OF_BOOTSTRAP, OF_NODE];

/** A time since when a step waits. */
export type StartTime = keyof NonNullable<ClusterAPIMachineStatus['deletion']>;

/** Since when a step waits: remembered, so that the next leader goes on counting. */
export function started({ machine }: MachinePass, name: StartTime, nowMs: number): string {
  const since = machine.status.deletion?.[name] ?? toTimestamp(nowMs);
  machine.status.deletion = { ...machine.status.deletion, [name]: since };
  return since;
}

/** A step that says by a condition of the older contract that, and for what, it waits; that it has succeeded it says itself. */
export function notedWhileWaiting(step: ClusterAPIMachineStep, type: string, reason: string): ClusterAPIMachineStep {
  return {
    name: step.name,
    async run(pass) {
      const result = await step.run(pass);
      if (result.kind !== 'next') {
        pass.older.push(older(type, 'False', reason, { message: pass.deleting?.message ?? '' }));
      }
      return result;
    },
  };
}

/** Ends a pass of a deletion: says what it waits for, and when it looks again. */
export function waits(
  pass: MachinePass,
  reason: string,
  message: string,
  { againMs, event }: { readonly againMs?: number; readonly event?: DeletionWait['event'] } = {},
): StepResult {
  pass.deleting = { reason, message, ...(event !== undefined && { event }) };
  if (againMs !== undefined) pass.notes.alsoAfter(againMs, message);
  return waitFor(message);
}

/**
 * The same while something is not known that was known before: a step after the drain that was reached keeps its reason. It is all that the
 * older version stores of hooks that were waited for, and a Node is not drained any more after them.
 */
export function waitsForFacts(
  pass: MachinePass,
  reason: string,
  message: string,
  { event }: { readonly event?: DeletionWait['event'] } = {},
): StepResult {
  const said = lastDeletingCondition(pass)?.reason;
  return waits(pass, said !== undefined && AFTER_DRAIN.includes(said) ? said : reason, message, { event });
}

export function lastDeletingCondition({ observed }: MachinePass): ClusterAPICondition | undefined {
  const said = conditionOf(observed.status?.conditions, 'Deleting');
  return said?.status === 'True' ? said : undefined;
}

/** Whether a time that began then is over; without a limit it never is. */
export function isOver(sinceTimestamp: string | undefined, seconds: number | undefined, nowMs: number): boolean {
  return timeLeftMs(sinceTimestamp, seconds, nowMs) === 0;
}

/** How much of such a time is left, in ms; undefined without a limit. */
export function timeLeftMs(since: string | undefined, seconds: number | undefined, nowMs: number): number | undefined {
  if (seconds === undefined || seconds === 0) return undefined;
  return Math.max(0, (fromTimestamp(since) ?? nowMs) + seconds * 1_000 - nowMs);
}
