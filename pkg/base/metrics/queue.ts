import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

/** What a queue shows when it is scraped. Ages are in milliseconds. */
export interface QueueState {
  /** Keys that wait for a worker. */
  readonly depth: number;
  /** Age of the key that has waited longest; 0 when none waits. */
  readonly oldestWaitingMs: number;
  /** For how long each run in progress has been going on. */
  readonly runningMs: readonly number[];
}

export interface QueueRecorder {
  added(): void;
  retried(): void;
  started(waitedMs: number): void;
  finished(tookMs: number): void;
}

/** The workqueues' metrics: the original's names and label, read from the queues at scrape time where they are states. */
export interface QueueMetrics {
  /** Begins to show a queue under `name`. Throws when the name is taken. */
  track(name: string, state: () => QueueState): QueueRecorder;
}

/** The original's: ten from 10 ns on, each ten times the one before. */
const BUCKETS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10];
const SECOND_MS = 1_000;
const labelNames = ['name'] as const;

export function queueMetrics(registry: Registry): QueueMetrics {
  const { counter, histogram } = declaring(registry);
  const queues = new Map<string, () => QueueState>();
  declareStates(registry, queues);
  const adds = counter('mcm_workqueue_adds_total', labelNames).help(
    'Keys added to a workqueue; a key that is already queued is not counted again.',
  );
  const retries = counter('mcm_workqueue_retries_total', labelNames).help(
    'Keys added again after a delay or a failure.',
  );
  const waited = histogram('mcm_workqueue_queue_duration_seconds', labelNames, BUCKETS).help(
    'Time that keys waited for a worker.',
  );
  const worked = histogram('mcm_workqueue_work_duration_seconds', labelNames, BUCKETS).help(
    'Duration of the processing of a key.',
  );
  return {
    track(name, state) {
      if (queues.has(name)) throw new Error(`a workqueue named ${name} already exists`);
      queues.set(name, state);
      return {
        added: () => adds.inc({ name }),
        retried: () => retries.inc({ name }),
        started: (waitedMs) => waited.observe({ name }, waitedMs / SECOND_MS),
        finished: (tookMs) => worked.observe({ name }, tookMs / SECOND_MS),
      };
    },
  };
}

/** Gauges that are read from the queues when they are scraped. */
function declareStates(registry: Registry, queues: ReadonlyMap<string, () => QueueState>): void {
  const { series } = declaring(registry);
  const gauge = (metric: string, help: string, valueOf: (state: QueueState) => number): void =>
    series(metric, help, labelNames, () => [...queues].map(([name, state]) => [{ name }, valueOf(state())]));
  gauge('mcm_workqueue_depth', 'Keys that wait for a worker.', (state) => state.depth);
  gauge(
    'machinist_workqueue_oldest_waiting_seconds',
    'Age of the key that has waited longest for a worker.',
    (state) => state.oldestWaitingMs / SECOND_MS,
  );
  gauge(
    'mcm_workqueue_unfinished_work_seconds',
    'Total duration of all runs in progress; unbounded growth indicates stuck workers.',
    (state) => state.runningMs.reduce((sum, ms) => sum + ms, 0) / SECOND_MS,
  );
  gauge(
    'mcm_workqueue_longest_running_processor_seconds',
    'Duration of the longest run in progress.',
    (state) => state.runningMs.reduce((longest, ms) => Math.max(longest, ms), 0) / SECOND_MS,
  );
}
