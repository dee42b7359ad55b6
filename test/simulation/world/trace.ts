import { createHash } from 'node:crypto';

/** So many of the latest lines are kept to be shown. */
const KEPT = 400;

/** What happened in a world, line by line: two runs of a seed are the same when their traces have the same digest. */
export class Trace {
  readonly #hash = createHash('sha256');
  readonly #now: () => number;
  readonly #latest: string[] = [];
  readonly #all: string[] | undefined;
  #count = 0;

  /** `now`: milliseconds since the world began. `keepsAll`: for those who compare two runs. */
  constructor(now: () => number, { keepsAll = false }: { readonly keepsAll?: boolean } = {}) {
    this.#now = now;
    this.#all = keepsAll ? [] : undefined;
  }

  add(text: string): void {
    const line = `${(this.#now() / 1_000).toFixed(3)} ${text}`;
    this.#hash.update(`${line}\n`);
    this.#count += 1;
    this.#all?.push(line);
    this.#latest.push(line);
    if (this.#latest.length > 2 * KEPT) this.#latest.splice(0, KEPT);
  }

  get count(): number {
    return this.#count;
  }

  /** All lines, where they are kept. */
  get lines(): readonly string[] {
    return this.#all ?? this.#latest;
  }

  /** The latest lines. */
  latest(count: number): readonly string[] {
    return this.#latest.slice(-count);
  }

  digest(): string {
    return this.#hash.copy().digest('hex');
  }
}
