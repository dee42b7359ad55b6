/** What was told of Machines, by UID: each thing once. */
export class ReportedOnce {
  readonly #reported = new Map<string, Set<string>>();

  /** True the first time that this is to be told of this Machine. */
  isNew(uid: string, what: string): boolean {
    const told = this.#reported.get(uid) ?? new Set();
    if (told.has(what)) return false;
    this.#reported.set(uid, told.add(what));
    return true;
  }

  /** Whether `what` has just become true of this Machine; once it no longer is, it may become so again. */
  becomes(uid: string, what: string, isSo: boolean): boolean {
    if (isSo) return this.isNew(uid, what);
    this.#reported.get(uid)?.delete(what);
    return false;
  }

  /** The Machine is gone. */
  forget(uid: string): void {
    this.#reported.delete(uid);
  }
}
