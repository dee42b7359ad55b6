import { byAge, sumOf, type Resizes, type SetFacts } from '../sets/set-facts.ts';
import { leastAvailable, type RolloutLimits } from '../../replicas/limits.ts';
import { grownSize } from '../scaling/size-rule.ts';
import { takeFree } from '../scaling/take-free.ts';

/**
 * What the new set of a RollingUpdate should grow to, or shrink to when it is larger than desired. A frozen
 * MachineDeployment raises nothing.
 */
export function growNewSet(
  newSet: SetFacts,
  oldSets: readonly SetFacts[],
  limits: RolloutLimits,
  isFrozen: boolean,
): Resizes {
  const size = newSet.size > limits.replicas ? limits.replicas : grownSize(newSet, oldSets, limits);
  if (size === newSet.size || (size > newSet.size && isFrozen)) return new Map();
  return new Map([[newSet.name, size]]);
}

/**
 * What the old sets of a RollingUpdate may give up now, oldest set first:
 *
 * 1. Machines that are missing, which cost none;
 * 2. Machines that are not available anyway, as far as they are the first to go;
 * 3. available ones, as long as at least `replicas - unavailable` stay available over all sets, less those of old sets that have
 *    failed and are preserved.
 *
 * A Machine of the new set that is not available yet counts as if it never will be. One that has failed and is preserved is no reason to
 * give up another: a template of which every Machine fails would take all that work.
 */
export function shrinkOldSets(newSet: SetFacts, oldSets: readonly SetFacts[], limits: RolloutLimits): Resizes {
  const old = oldSets.filter(({ size }) => size > 0).toSorted(byAge);
  const all = [newSet, ...old];
  const least = leastAvailable(
    limits,
    sumOf(old, ({ preservedFailed }) => preservedFailed),
  );
  const budget = sumOf(all, ({ size }) => size) - least - (newSet.size - newSet.available);
  let spare = sumOf(all, ({ available }) => available) - least;

  const sizes = new Map<string, number>();
  const { sets } = takeFree(
    old.map((set) => ({ ...set, free: set.free + set.freePreserved })),
    budget,
  );
  for (const [i, { name, size }] of sets.entries()) {
    const loss = Math.max(0, Math.min(size, spare)); // counts each as available, whatever it is
    spare -= loss;
    if (size - loss !== old[i]?.size) sizes.set(name, size - loss);
  }
  return sizes;
}
