import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

/** How an attempt to take or renew a Lease ended. */
export type LeaseResult = 'ok' | 'conflict' | 'error';

/** What is counted about leadership. */
export interface LeaderMetrics {
  readonly isLeader: Gauge<'lease'>;
  readonly renewals: Counter<'lease' | 'result'>;
}

/** Declares the metrics of leader election in `registry`. */
export function leaderMetrics(registry: Registry): LeaderMetrics {
  const registers = [registry];
  return {
    isLeader: new Gauge({
      name: 'machinist_leader',
      help: 'Whether this process holds the Lease: 1 it does, 0 it waits.',
      labelNames: ['lease'],
      registers,
    }),
    renewals: new Counter({
      name: 'machinist_lease_renewals_total',
      help: 'Attempts to take or renew the Lease, by result (ok, conflict, error).',
      labelNames: ['lease', 'result'],
      registers,
    }),
  };
}
