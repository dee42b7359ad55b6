import type { KeyedQueue, KeyedQueueDeps } from '../workqueue/keyed-queue.ts';
import type { Queue } from '../workqueue/queue.ts';
import type { Reconcile } from './worker.ts';

/** Fills the queue of a controller from now on; called once, when its leadership has begun and its caches are up to date. */
export type Watch = (queue: Queue) => void;

/** A controller, or a loop such as a safety check: what it does for a key, and what tells it of keys. The operator runs it. */
export interface Controller extends Pick<KeyedQueueDeps, 'concurrency' | 'restMs' | 'groupOf' | 'mostOfGroup'> {
  /** In logs, metrics and flag `--controllers`. */
  readonly name: string;
  /** Name of its queue in metrics, as in the original. */
  readonly queue: string;
  /** Name of the Lease under which it works. */
  readonly lease: string;
  readonly reconcile: Reconcile;
  /** Done before each pass, also before one that has to wait for the target cluster. */
  readonly report?: (key: string, signal: AbortSignal) => Promise<void>;
  /** Whether a key has to wait until the caches of the target cluster have caught up with the present; none has to if left out. */
  readonly requiresTarget?: (key: string) => boolean;
  readonly watches: readonly Watch[];
  /** Ends its queue and all else that it began, see Member.stop; without it only the queue ends. */
  readonly end?: (queue: KeyedQueue, graceMs: number) => Promise<void>;
}
