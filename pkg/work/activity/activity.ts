/** Kinds of long work; each has its own limit of how many run at once. */
export type ActivityKind = 'create' | 'initialize' | 'status' | 'delete' | 'drain';

/** How long work stands. */
export type Activity<T> = { readonly state: 'running'; readonly sinceMs: number } | Ended<T>;

/** `settledAtMs` is monotonic. */
export type Ended<T> =
  | { readonly state: 'done'; readonly result: T; readonly settledAtMs: number }
  | { readonly state: 'failed'; readonly error: unknown; readonly settledAtMs: number };

/** Who the work is for: the UID makes a re-created object a stranger, the key is what is enqueued when the work ends. */
export interface ActivityOwner {
  readonly uid: string;
  readonly key: string;
  /** At which account of which provider the work is done; undefined when at none. Limits hold for each apart: one that hangs keeps nobody else waiting. */
  readonly account: string | undefined;
}

/** Long work. It may call `tell` when there is news for its owner before it ends: the owner's key is enqueued then too. */
export type ActivityWork<T> = (signal: AbortSignal, tell: () => void) => Promise<T>;

export type ResultsByKind = Readonly<Partial<Record<ActivityKind, unknown>>>;

/**
 * Long work (driver calls, drains) that holds no worker: a reconcile starts it or looks at it and returns; when it ends,
 * the owner's key is enqueued and the next pass takes the result.
 */
export interface Activities<R extends ResultsByKind = Record<ActivityKind, unknown>> {
  /** Starts `run`, unless work of this kind for this owner is running or has ended and was not taken yet. */
  startOrGet<K extends keyof R & ActivityKind>(owner: ActivityOwner, kind: K, run: ActivityWork<R[K]>): Activity<R[K]>;
  /** What stands there, without starting anything. */
  get<K extends keyof R & ActivityKind>(uid: string, kind: K): Activity<R[K]> | undefined;
  /** Takes a settled result away, so that the work can be started anew. No-op while it runs. */
  forget(uid: string, kind: ActivityKind): void;
  /** Aborts running work; it still counts as running until it has ended. */
  abort(uid: string, kind: ActivityKind, reason: string): void;
  /**
   * The object of this key is gone, or has `exceptUID` now: results of former owners are dropped, and what still runs for
   * them is dropped when it ends. Only drains are aborted: what they empty may belong to somebody else by now.
   */
  forgetAll(key: string, exceptUID?: string): void;
}
