import type { SetFacts } from '../sets/set-facts.ts';

/**
 * Takes up to `excess` from the sets in their order: what is missing, then unavailable Machines that go first anyway. Otherwise sets would give
 * up Machines that work for those of another that cannot be created, or never join.
 */
export function takeFree(
  sets: readonly SetFacts[],
  excess: number,
): { readonly sets: readonly SetFacts[]; readonly left: number } {
  let left = excess;
  const taken = sets.map((set) => ({ ...set }));
  for (const part of ['missing', 'free'] as const) {
    for (const [i, { size, [part]: most }] of sets.entries()) {
      const its = taken[i];
      if (its === undefined) continue;
      const loss = Math.max(0, Math.min(most - (size - its.size), its.size, left));
      left -= loss;
      its.size -= loss;
    }
  }
  return { sets: taken, left };
}
