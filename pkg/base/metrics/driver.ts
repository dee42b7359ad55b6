import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

export function driverMetrics(registry: Registry) {
  const { counter, gauge, histogram } = declaring(registry);
  return {
    duration: histogram(
      'mcm_cloud_api_driver_request_duration_seconds',
      'Duration in seconds of driver calls that succeeded, or found no VM.',
      { labelNames: ['provider', 'operation'] },
    ),
    failures: counter(
      'mcm_cloud_api_driver_requests_failed_total',
      'Driver calls that failed, by number of the machine code. NotFound does not count as a failure of GetMachineStatus and DeleteMachine.',
      ['provider', 'operation', 'error_code'],
    ),
    throttled: histogram(
      'machinist_driver_throttle_wait_seconds',
      'Seconds that driver calls waited because of --driver-qps.',
      { labelNames: ['provider'] },
    ),
    up: gauge(
      'machinist_driver_up',
      'Whether the last attempt to connect to the driver succeeded (1) or failed (0); no value before the first attempt. A lost connection is detected within seconds, even without calls.',
      ['provider'],
    ),
    running: gauge('mcm_cloud_api_driver_requests_running', 'Driver calls in progress.', ['provider', 'operation']),
  };
}

/** Metrics of drivers; of their calls under the names and labels that the original's provider binaries share. */
export type DriverMetrics = ReturnType<typeof driverMetrics>;
