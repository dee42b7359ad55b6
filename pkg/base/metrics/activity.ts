import { Gauge, type Registry } from 'prom-client';

import { declaring } from './declaring.ts';

export interface ActivityState {
  readonly kind: string;
  /** Work that waits for the limit of its kind. */
  readonly queued: number;
  readonly running: number;
  /** Age of the oldest work that has not ended, waiting included; 0 when there is none. */
  readonly oldestMs: number;
}

/** How work ended. aborted: it failed after it had been told to stop. */
export type ActivityResult = 'done' | 'failed' | 'aborted';

export interface ActivityMetrics {
  /** Shows the state of a registry, beside those of others. */
  track(states: () => readonly ActivityState[]): void;
  settled(kind: string, result: ActivityResult, tookMs: number): void;
}

export function activityMetrics(registry: Registry): ActivityMetrics {
  const { counter, histogram } = declaring(registry);
  const registers = [registry];
  const registries: (() => readonly ActivityState[])[] = [];
  const gauge = (
    name: string,
    help: string,
    value: (state: ActivityState) => number,
    together: (...values: readonly number[]) => number = (...values) => values.reduce((sum, one) => sum + one, 0),
  ): Gauge<'kind'> =>
    new Gauge({
      name,
      help,
      labelNames: ['kind'],
      registers,
      collect() {
        const states = registries.flatMap((read) => read());
        for (const [kind, same] of Map.groupBy(states, (state) => state.kind)) {
          this.set({ kind }, together(...same.map(value)));
        }
      },
    });
  gauge(
    'machinist_activities_queued',
    'Long-running tasks that wait for the limit of their kind.',
    (state) => state.queued,
  );
  gauge('machinist_activities_running', 'Long-running tasks in progress.', (state) => state.running);
  gauge(
    'machinist_activity_oldest_seconds',
    'Age of the oldest long-running task that has not ended, including its waiting time.',
    (state) => state.oldestMs / 1_000,
    Math.max,
  );
  const ended = counter('machinist_activities_total', ['kind', 'result']).help(
    'Long-running tasks that ended, by kind and result (done, failed, aborted).',
  );
  const duration = histogram(
    'machinist_activity_duration_seconds',
    ['kind'],
    [0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 7_200],
  ).help('Duration of long-running tasks, from the request to the end.');
  return {
    track(states) {
      registries.push(states);
    },
    settled(kind, result, tookMs) {
      ended.inc({ kind, result });
      duration.observe({ kind }, tookMs / 1_000);
    },
  };
}
