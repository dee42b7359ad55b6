/** What was told of Machines, by UID: each thing once. */
export class News {
  readonly #told = new Map<string, Set<string>>();

  /** True the first time that this is to be told of this Machine. */
  isNews(uid: string, what: string): boolean {
    const told = this.#told.get(uid) ?? new Set();
    if (told.has(what)) return false;
    this.#told.set(uid, told.add(what));
    return true;
  }

  /** Whether `what` has just become true of this Machine; once it no longer is, it may become so again. */
  becomes(uid: string, what: string, isSo: boolean): boolean {
    if (isSo) return this.isNews(uid, what);
    this.#told.get(uid)?.delete(what);
    return false;
  }

  /** The Machine is gone. */
  forget(uid: string): void {
    this.#told.delete(uid);
  }
}
