import { isAccountOf } from '../../driver/account.ts';

/**
 * Accounts whose provider the last look of the orphan loop does not believe, because it omits VMs. Written by that, read where a list decides
 * that no VM is left; empty in a process that does not run both.
 */
export class DistrustedAccounts {
  #accounts: ReadonlySet<string> = new Set();
  #lookedMs = -Infinity;

  /** `lookedMs`: when that look began; monotonic. */
  replace(accounts: Iterable<string>, lookedMs: number): void {
    this.#accounts = new Set(accounts);
    this.#lookedMs = lookedMs;
  }

  /** When the look began of which this is: what was listed later may be wrong all the same. */
  get lookedMs(): number {
    return this.#lookedMs;
  }

  /** Whether one of a provider is: the Secrets of its classes may all be of one account. */
  hasOf(provider: string): boolean {
    return [...this.#accounts].some((account) => isAccountOf(account, provider));
  }
}
