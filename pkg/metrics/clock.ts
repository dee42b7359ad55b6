import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

/** What is counted about our wall time. */
export interface ClockMetrics {
  readonly reanchors: Counter;
  readonly lastSkew: Gauge;
}

/** Declares the clock's metrics in `registry`. */
export function clockMetrics(registry: Registry): ClockMetrics {
  const registers = [registry];
  return {
    reanchors: new Counter({
      name: 'machinist_clock_reanchors_total',
      help: 'How often the wall time was moved because the API servers said that it was more than 5 s wrong.',
      registers,
    }),
    lastSkew: new Gauge({
      name: 'machinist_clock_last_skew_seconds',
      help: 'By how much the wall time was moved last; positive when this host was behind.',
      registers,
    }),
  };
}
