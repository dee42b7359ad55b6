import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

export function driverMetrics(registry: Registry) {
  const { counter, gauge, histogram } = declaring(registry);
  return {
    duration: histogram('mcm_cloud_api_driver_request_duration_seconds', ['provider', 'operation']).help(
      'Duration in seconds of driver calls that succeeded, or found no VM.',
    ),
    failures: counter('mcm_cloud_api_driver_requests_failed_total', ['provider', 'operation', 'error_code']).help(
      'Driver calls that failed, by number of the machine code. NotFound does not count as a failure of GetMachineStatus and DeleteMachine.',
    ),
    throttled: histogram('machinist_driver_throttle_wait_seconds', ['provider']).help(
      'Seconds that driver calls waited because of --driver-qps.',
    ),
    up: gauge('machinist_driver_up', ['provider']).help(
      'Whether the last attempt to connect to the driver succeeded (1) or failed (0); no value before the first attempt. A lost connection is detected within seconds, even without calls.',
    ),
    running: gauge('mcm_cloud_api_driver_requests_running', ['provider', 'operation']).help(
      'Driver calls in progress.',
    ),
  };
}

/** Metrics of drivers; of their calls under the names and labels that the original's provider binaries share. */
export type DriverMetrics = ReturnType<typeof driverMetrics>;
