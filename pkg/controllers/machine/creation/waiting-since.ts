import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { isBeingCreated } from '../../machines/status.ts';
import { BEING_INITIALIZED, INITIALIZE_FAILED } from '../../machines/status-texts.ts';

/**
 * Since when (ms since the epoch) the VM of this machine has been there and waits to be initialized; undefined unless a failure
 * of that is recorded, or that it goes on.
 */
export function initializingSinceMs(machine: Pick<Machine, 'status'>): number | undefined {
  const { description = '' } = machine.status?.lastOperation ?? {};
  const hasFailed = phaseOf(machine) === 'CrashLoopBackOff' && description.startsWith(INITIALIZE_FAILED);
  const goesOn = isBeingCreated(machine) && description.startsWith(BEING_INITIALIZED);
  if (!hasFailed && !goesOn) return undefined;
  return fromTimestamp(machine.status?.currentStatus?.lastUpdateTime);
}

/** Since when (ms since the epoch) the API server has refused to record the VM of a new machine; undefined when it does not. */
export function refusedSinceMs(machine: Pick<Machine, 'status'>): number | undefined {
  const { type, errorCode } = machine.status?.lastOperation ?? {};
  if (phaseOf(machine) !== 'CrashLoopBackOff' || type !== 'Create' || errorCode !== 'RecordRefused') return undefined;
  return fromTimestamp(machine.status?.currentStatus?.lastUpdateTime);
}
