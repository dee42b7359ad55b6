/** Which pools this process serves at present: not those that are served by somebody else, nor those of which it does not know yet. */
export class ServedPools {
  readonly #served = new Set<string>();
  #begun: (pool: string) => void = () => undefined;

  /** Who is told when this process begins to serve a pool; one only. */
  onBegin(told: (pool: string) => void): void {
    this.#begun = told;
  }

  has(pool: string): boolean {
    return this.#served.has(pool);
  }

  set(pool: string, isServed: boolean): void {
    if (isServed === this.#served.has(pool)) return;
    if (!isServed) return void this.#served.delete(pool);
    this.#served.add(pool);
    this.#begun(pool);
  }
}
