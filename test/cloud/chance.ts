import { createHash } from 'node:crypto';

/** Chances that follow from a seed: the same questions get the same answers in every run. */
export class Chance {
  readonly #seed: string;

  constructor(seed: string) {
    this.#seed = seed;
  }

  /** A number from 0 up to, and without, `limit`. */
  below(limit: number, ...what: readonly (string | number)[]): number {
    const digest = createHash('sha256')
      .update(`${this.#seed}/${what.join('/')}`)
      .digest();
    return Math.floor((digest.readUIntBE(0, 6) / 2 ** 48) * limit);
  }

  /** One of several. */
  pick<T>(choices: readonly T[], ...what: readonly (string | number)[]): T {
    const chosen = choices[this.below(choices.length, ...what)];
    if (chosen === undefined) throw new Error('nothing to choose from');
    return chosen;
  }
}
