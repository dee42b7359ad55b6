import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

export function clockMetrics(registry: Registry) {
  const { counter, gauge } = declaring(registry);
  return {
    reanchors: counter('machinist_clock_reanchors_total').help(
      'Number of corrections of the wall clock because it differed from that of the API servers by more than 5 s.',
    ),
    lastSkew: gauge('machinist_clock_last_skew_seconds').help(
      'Last correction of the wall clock in seconds; positive if the clock of this host was behind.',
    ),
  };
}

export type ClockMetrics = ReturnType<typeof clockMetrics>;
