import type { Random } from '../../../pkg/base/random/random.ts';

/** A stream of random numbers that a seed and a name decide (sfc32); streams of other names are independent. */
export function seededRandom(seed: number, name: string): Random {
  let [a, b, c, count] = [seed >>> 0, hashOf(name), 0x9e3779b9, 1];
  const next = (): number => {
    const sum = (a + b + count) | 0;
    count = (count + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return (sum >>> 0) / 2 ** 32;
  };
  for (let i = 0; i < 12; i++) next();
  return next;
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** One of a list. Throws for an empty one. */
export function oneOf<T>(random: Random, items: readonly T[]): T {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new Error('one of nothing');
  return item;
}

/** An integer from `least` up to `most`. */
export function integerIn(random: Random, least: number, most: number): number {
  return least + Math.floor(random() * (most - least + 1));
}
