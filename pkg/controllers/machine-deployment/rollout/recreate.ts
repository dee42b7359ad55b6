import { sumOf, type Resizes, type SetFacts } from '../sets/set-facts.ts';

/** What a Recreate does next. wait: Machines of old sets still exist. grow: the new set is made, or brought to its size. */
export type RecreateStep =
  { readonly kind: 'shrink'; readonly sizes: Resizes } | { readonly kind: 'wait' } | { readonly kind: 'grow' };

/** A Recreate first empties all old sets, waits until none of their Machines is left, and only then grows the new one. */
export function recreateStep(oldSets: readonly SetFacts[]): RecreateStep {
  const active = oldSets.filter(({ size }) => size > 0);
  if (active.length > 0) return { kind: 'shrink', sizes: new Map(active.map(({ name }) => [name, 0])) };
  return sumOf(oldSets, ({ existing }) => existing) > 0 ? { kind: 'wait' } : { kind: 'grow' };
}
