import { createHash } from 'node:crypto';

/** `count` of the items, chosen by `seed`: the same seed gives the same ones, in the order of the list. */
export function sampleOf<T>(items: readonly T[], count: number, seed: string): readonly T[] {
  const chosen = new Set(shuffle(items, seed).slice(0, count));
  return items.filter((item) => chosen.has(item));
}

/** The items in an order that is another one with each seed. */
export function shuffle<T>(items: readonly T[], seed: string): readonly T[] {
  const ranked = items.map((item, i) => ({ item, rank: rankOf(seed, i) }));
  return ranked.toSorted((a, b) => (a.rank < b.rank ? -1 : 1)).map(({ item }) => item);
}

function rankOf(seed: string, i: number): string {
  return createHash('sha256').update(`${seed}/${i}`).digest('hex');
}
