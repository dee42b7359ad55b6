import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

/** Declares the clock's metrics in `registry`. */
export function clockMetrics(registry: Registry) {
  const { counter, gauge } = declaring(registry);
  return {
    reanchors: counter(
      'machinist_clock_reanchors_total',
      'How often the wall time was moved because the API servers said that it was more than 5 s wrong.',
    ),
    lastSkew: gauge(
      'machinist_clock_last_skew_seconds',
      'By how much the wall time was moved last; positive when this host was behind.',
    ),
  };
}

/** What is counted about our wall time. */
export type ClockMetrics = ReturnType<typeof clockMetrics>;
