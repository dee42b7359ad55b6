import type { Resizes, SetFacts } from '../sets/set-facts.ts';

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

/** Takes `excess` from the first sets, all that they have. */
export function takeInOrder(sets: readonly Pick<SetFacts, 'name' | 'size'>[], excess: number): Resizes {
  const sizes = new Map<string, number>();
  let left = excess;
  for (const { name, size } of sets) {
    const loss = Math.min(size, left);
    left -= loss;
    sizes.set(name, size - loss);
  }
  return sizes;
}
