import { createHash } from 'node:crypto';

/** `count` of the items, chosen by `seed`: the same seed gives the same ones, in the order of the list. */
export function sampleOf<T>(items: readonly T[], count: number, seed: string): readonly T[] {
  const ranked = items.map((item, i) => ({ item, i, rank: rankOf(seed, i) }));
  const chosen = ranked.toSorted((a, b) => (a.rank < b.rank ? -1 : 1)).slice(0, count);
  return chosen.toSorted((a, b) => a.i - b.i).map(({ item }) => item);
}

function rankOf(seed: string, i: number): string {
  return createHash('sha256').update(`${seed}/${i}`).digest('hex');
}
