import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { isVMRefused } from '../../machine-facts/joining.ts';
import { failedCallOf } from '../../machine-facts/original-texts.ts';
import { isBeingCreated } from '../../machine-facts/status.ts';

/**
 * Since when (ms since the epoch) the VM of this machine has been there and waits to be initialized; undefined unless a failure
 * of that is recorded, or that it goes on.
 */
export function initializingSinceMs(machine: Pick<Machine, 'status'>): number | undefined {
  const { lastOperation } = machine.status ?? {};
  const hasFailed = phaseOf(machine) === 'CrashLoopBackOff' && failedCallOf(lastOperation) === 'initialize';
  const isUnderWay = isBeingCreated(machine) && lastOperation?.errorCode === 'VMBeingInitialized';
  if (!hasFailed && !isUnderWay) return undefined;
  return fromTimestamp(machine.status?.currentStatus?.lastUpdateTime);
}

/** Since when (ms since the epoch) the API server has refused to record the VM of a new machine; undefined when it does not. */
export function refusedSinceMs(machine: Pick<Machine, 'spec' | 'status'>): number | undefined {
  if (phaseOf(machine) !== 'CrashLoopBackOff' || !isVMRefused(machine)) return undefined;
  return fromTimestamp(machine.status?.currentStatus?.lastUpdateTime);
}
