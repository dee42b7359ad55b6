import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

export type LeaseResult = 'ok' | 'conflict' | 'error';

export function leaderMetrics(registry: Registry) {
  const { counter, gauge } = declaring(registry);
  return {
    isLeader: gauge('machinist_leader', ['lease']).help(
      'Whether this process holds the Lease (1) or waits for it (0).',
    ),
    renewals: counter('machinist_lease_renewals_total', ['lease', 'result']).help(
      'Attempts to acquire or renew the Lease, by result (ok, conflict, error).',
    ),
  };
}
