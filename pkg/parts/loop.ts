import type { Clock } from '../clock/clock.ts';
import type { Logger } from '../log/logger.ts';
import type { QueueMetrics } from '../metrics/queue.ts';
import type { ReconcileMetrics } from '../metrics/reconcile.ts';
import { type Reconcile, Worker } from '../reconcile/worker.ts';
import { Backoff } from '../workqueue/backoff.ts';
import { KeyedQueue } from '../workqueue/keyed-queue.ts';

/** What every loop needs. */
export interface LoopParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly queueMetrics: QueueMetrics;
  readonly reconcileMetrics: ReconcileMetrics;
}

/** How one loop is made. */
export interface LoopOptions {
  /** Name in logs. */
  readonly controller: string;
  /** Name of the queue in metrics, as in the original. */
  readonly queue: string;
  readonly concurrency: number;
  readonly reconcile: Reconcile;
}

/** A pass never waits for a driver or a drain, so one that takes this long hangs. */
const PASS_TIMEOUT_MS = 120_000;
const FIRST_RETRY_MS = 200;
const LONGEST_RETRY_MS = 60_000;

/** A queue whose keys are worked on by `reconcile`. */
export function makeLoop(parts: LoopParts, { controller, queue, concurrency, reconcile }: LoopOptions): KeyedQueue {
  const { clock, log } = parts;
  const worker = new Worker({
    controller,
    reconcile,
    timeoutMs: PASS_TIMEOUT_MS,
    clock,
    log,
    metrics: parts.reconcileMetrics,
  });
  return new KeyedQueue({
    name: queue,
    concurrency,
    clock,
    backoff: new Backoff({ baseMs: FIRST_RETRY_MS, maxMs: LONGEST_RETRY_MS }),
    metrics: parts.queueMetrics,
    work: worker.work,
  });
}
