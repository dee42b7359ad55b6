/**
 * How urgent a key is: `high` for deletions, `highest` for those that have begun, so that of thousands some end while others begin, and
 * `low` for the first list and resyncs, so that users are not stuck behind them.
 */
export type Priority = 'highest' | 'high' | 'normal' | 'low';

/** What controllers may do to a workqueue. Duplicate keys collapse; a key never runs twice at once. */
export interface Queue {
  add(key: string, priority?: Priority): void;
  /** Runs `key` after `delayMs` at the latest; the soonest of several wins. */
  addAfter(key: string, delayMs: number): void;
}
