import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

/** Declares the metrics of drivers in `registry`. */
export function driverMetrics(registry: Registry) {
  const { counter, gauge, histogram } = declaring(registry);
  return {
    duration: histogram(
      'mcm_cloud_api_driver_request_duration_seconds',
      'Seconds that a call to the driver took which succeeded, or found that there is no VM.',
      { labelNames: ['provider', 'operation'] },
    ),
    failures: counter(
      'mcm_cloud_api_driver_requests_failed_total',
      'Calls to the driver that failed, by the number of the machine code. That there is no VM is no failure of a question for it, or of a deletion.',
      ['provider', 'operation', 'error_code'],
    ),
    throttled: histogram(
      'machinist_driver_throttle_wait_seconds',
      'Seconds that a call to the driver waited for --driver-qps.',
      { labelNames: ['provider'] },
    ),
    up: gauge(
      'machinist_driver_up',
      'Whether the last attempt to get to know the driver succeeded: 1 or 0; no value before the first. A lost connection is noticed within seconds, whether anything is asked of the driver or not.',
      ['provider'],
    ),
    running: gauge('mcm_cloud_api_driver_requests_running', 'Calls to the driver that have not been answered yet.', [
      'provider',
      'operation',
    ]),
  };
}

/** Metrics of drivers; of their calls under the names and labels that the original's provider binaries share. */
export type DriverMetrics = ReturnType<typeof driverMetrics>;
