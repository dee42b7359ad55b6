/** Those who wait for a fencing token above one under which somebody has acted before. */
export class TokenRaises {
  readonly #waiting = new Map<bigint, PromiseWithResolvers<string | undefined>>();

  /** Resolves with undefined when there is one above `token`, or with why there will be none. */
  async above(token: bigint): Promise<string | undefined> {
    const raise = this.#waiting.get(token) ?? Promise.withResolvers<string | undefined>();
    this.#waiting.set(token, raise);
    return await raise.promise;
  }

  raisedTo(token: number): void {
    for (const [below, { resolve }] of this.#waiting) {
      if (token <= below) continue;
      this.#waiting.delete(below);
      resolve(undefined);
    }
  }

  /** There will be none. */
  end(why: string): void {
    for (const { resolve } of this.#waiting.values()) resolve(why);
    this.#waiting.clear();
  }
}
