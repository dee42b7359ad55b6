import { waitFor, type StepResult } from '../../reconcile/result.ts';
import type { MachineContext } from './context.ts';
import type { DrainPurpose } from './memory.ts';

/**
 * Makes room for a drain: one that was begun for another purpose has another barrier and another deadline, so it is broken off.
 * Returns the result that ends the pass for as long as it has not ended; undefined when the way is free.
 */
export function yieldDrain(
  { machine, activities, memory }: Pick<MachineContext, 'machine' | 'activities' | 'memory'>,
  purpose: DrainPurpose,
): StepResult | undefined {
  const { uid } = machine.metadata;
  const record = memory.drains.get(uid);
  if (record === undefined || record.purpose === purpose) return undefined;
  activities.abort(uid, 'drain', `it is drained for its ${purpose} now`);
  if (activities.get(uid, 'drain')?.state === 'running') return waitFor('another drain to end');
  activities.forget(uid, 'drain');
  memory.drains.delete(uid);
  return undefined;
}
