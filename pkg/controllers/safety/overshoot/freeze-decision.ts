import type { FreezeMarks } from '../../replicas/freeze-marks.ts';
import type { OvershootLimits } from './limits.ts';

export type FreezeDecision = 'freeze' | 'unfreeze' | 'leave';

/**
 * What to do about a set of `count` Machines:
 *
 * | count                 | marks          | verdict                                  |
 * |-----------------------|----------------|------------------------------------------|
 * | high or more          | not both       | freeze, unless it was released lately    |
 * | between               | condition only | the same: it was cut short               |
 * | between               | any other      | leave                                    |
 * | low or less           | one of them    | unfreeze                                 |
 *
 * One that created too much is its own controller's. High wins where both are the same number, or a set would be frozen and unfrozen forever.
 */
export function decideOnSet(
  count: number,
  { high, low }: OvershootLimits,
  marks: FreezeMarks,
  isReleased: boolean,
): FreezeDecision {
  const { isLabelled, hasCondition, isStopped } = marks;
  if (isStopped === true) return 'leave';
  const isHalfFrozen = hasCondition && !isLabelled && count > low;
  if (count >= high || isHalfFrozen) return isReleased || (isLabelled && hasCondition) ? 'leave' : 'freeze';
  return count <= low && (isLabelled || hasCondition) ? 'unfreeze' : 'leave';
}

/** A MachineDeployment is frozen exactly while one of its sets shows a mark; one that created too much is its own controller's. */
export function decideOnDeployment(sets: readonly FreezeMarks[], marks: FreezeMarks): FreezeDecision {
  const { isLabelled, hasCondition, isStopped } = marks;
  if (isStopped === true) return 'leave';
  const isSetFrozen = sets.some((set) => set.isLabelled || set.hasCondition);
  if (isSetFrozen) return isLabelled && hasCondition ? 'leave' : 'freeze';
  return isLabelled || hasCondition ? 'unfreeze' : 'leave';
}
