/** Since when something is so, by name. */
export class Since {
  readonly #ms = new Map<string, number>();

  /** These are so now, and no others. Returns those that have been so for `forMs`. */
  observe(names: readonly string[], forMs: number, nowMs: number): readonly string[] {
    for (const name of this.#ms.keys()) if (!names.includes(name)) this.#ms.delete(name);
    for (const name of names) if (!this.#ms.has(name)) this.#ms.set(name, nowMs);
    return names.filter((name) => nowMs - (this.#ms.get(name) ?? nowMs) >= forMs);
  }
}
