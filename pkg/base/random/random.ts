import { randomInt } from 'node:crypto';

/** Uniform in [0, 1). Handed down from the operator, as the clock is, so that a simulation can draw it from a seed. */
export type Random = () => number;

/** The largest range that `randomInt` takes. */
const STEPS = 2 ** 48 - 1;

/** The source of production: cryptographic, since names and tokens come from it too. */
export const secureRandom: Random = () => randomInt(STEPS) / STEPS;

/** `length` characters of `alphabet`, each as likely as any other. */
export function charactersOf(random: Random, alphabet: string, length: number): string {
  return Array.from({ length }, () => alphabet.charAt(Math.floor(random() * alphabet.length))).join('');
}

export function hexOf(random: Random, length: number): string {
  return charactersOf(random, '0123456789abcdef', length);
}

export function uuidOf(random: Random): string {
  const digits = hexOf(random, 31);
  const variant = charactersOf(random, '89ab', 1);
  const parts = [digits.slice(0, 8), digits.slice(8, 12), `4${digits.slice(12, 15)}`, variant + digits.slice(15, 18)];
  return [...parts, digits.slice(18, 30)].join('-');
}
