/** What was reported of objects, by UID: each thing once. */
export class ReportedOnce {
  readonly #reported = new Map<string, Set<string>>();

  /** True the first time that this is to be reported of this object. */
  isNew(uid: string, what: string): boolean {
    const known = this.#reported.get(uid) ?? new Set();
    if (known.has(what)) return false;
    this.#reported.set(uid, known.add(what));
    return true;
  }

  /** Whether `what` has just become true of this object; once it no longer is, it may become so again. */
  becomes(uid: string, what: string, isSo: boolean): boolean {
    if (isSo) return this.isNew(uid, what);
    this.#reported.get(uid)?.delete(what);
    return false;
  }

  forget(uid: string): void {
    this.#reported.delete(uid);
  }
}
