/**
 * Accounts whose provider the last look of the orphan loop does not believe, because it omits VMs. Written by that, read where a list decides
 * that no VM is left; empty in a process that does not run both.
 */
export class DistrustedAccounts {
  #accounts: ReadonlySet<string> = new Set();

  replace(accounts: Iterable<string>): void {
    this.#accounts = new Set(accounts);
  }

  has(account: string): boolean {
    return this.#accounts.has(account);
  }
}
