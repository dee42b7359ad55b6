/** What a look says of VM lists. */
interface LookAtLists {
  /** Accounts whose lists it does not believe. */
  readonly accounts: Iterable<string>;
  /** When it began; monotonic. */
  readonly lookedMs: number;
  /** Keys of the classes that it could list. */
  readonly listed: Iterable<string>;
}

/**
 * Accounts whose provider the last look of the orphan loop does not believe, because it omits VMs. Written by that, read where a list decides
 * that no VM is left; empty in a process that does not run both.
 */
export class DistrustedAccounts {
  #accounts: ReadonlySet<string> = new Set();
  #listed: ReadonlySet<string> = new Set();
  #lookedMs = -Infinity;

  replace({ accounts, lookedMs, listed }: LookAtLists): void {
    this.#accounts = new Set(accounts);
    this.#listed = new Set(listed);
    this.#lookedMs = lookedMs;
  }

  /**
   * When the look began of which this is: what was listed later may be wrong all the same. -Infinity for a class that it could not list: who has
   * seen nothing has found nothing wrong.
   */
  lookedMs(classKey: string): number {
    return this.#listed.has(classKey) ? this.#lookedMs : -Infinity;
  }

  has(account: string): boolean {
    return this.#accounts.has(account);
  }
}
