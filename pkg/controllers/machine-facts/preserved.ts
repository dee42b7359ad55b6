import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { fromTimestamp } from '../../base/clock/clock.ts';

/** Until when a Machine is preserved, in ms since the epoch; undefined when it is not, or not yet. */
export function preservedUntilMs(machine: Machine): number | undefined {
  return fromTimestamp(machine.status?.currentStatus?.preserveExpiryTime);
}

/** Preserved at this moment: nothing but a lack of other victims ends it. */
export function isPreserved(machine: Machine, nowMs: number): boolean {
  return (preservedUntilMs(machine) ?? -Infinity) > nowMs;
}
