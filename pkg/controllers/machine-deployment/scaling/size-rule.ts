import type { RolloutLimits } from '../../replicas/limits.ts';
import { sumOf, type SetFacts } from '../sets/set-facts.ts';

/**
 * The next size of the new set, so that all sets together stay within replicas plus surge; never smaller than it is.
 *
 * A set counts with what it should have or what it has, whichever is more: Machines that are still going hold back growth
 * (they may hold quota), and Machines that are still to be made are not granted a second time.
 */
export function grownSize(newSet: SetFacts, oldSets: readonly SetFacts[], { replicas, surge }: RolloutLimits): number {
  const room = replicas + surge - sumOf([newSet, ...oldSets], (set) => Math.max(set.size, set.existing));
  return newSet.size + Math.max(0, Math.min(room, replicas - newSet.size));
}
