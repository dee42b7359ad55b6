import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';

/** Metrics of calls to drivers. Names and labels are those that the original's provider binaries share. */
export interface DriverMetrics {
  /** Duration of calls that succeeded. `operation` as in OPERATIONS of pkg/driver. */
  readonly duration: Histogram<'provider' | 'operation'>;
  /** Calls that failed, by the number of the machine code. */
  readonly failures: Counter<'provider' | 'operation' | 'error_code'>;
  /** Calls that run now. */
  readonly running: Gauge<'provider' | 'operation'>;
}

/** Declares the metrics of calls to drivers in `registry`. */
export function driverMetrics(registry: Registry): DriverMetrics {
  const registers = [registry];
  return {
    duration: new Histogram({
      name: 'mcm_cloud_api_driver_request_duration_seconds',
      help: 'Seconds that a successful call to the driver took.',
      labelNames: ['provider', 'operation'],
      registers,
    }),
    failures: new Counter({
      name: 'mcm_cloud_api_driver_requests_failed_total',
      help: 'Calls to the driver that failed, by the number of the machine code.',
      labelNames: ['provider', 'operation', 'error_code'],
      registers,
    }),
    running: new Gauge({
      name: 'mcm_cloud_api_driver_requests_running',
      help: 'Calls to the driver that have not been answered yet.',
      labelNames: ['provider', 'operation'],
      registers,
    }),
  };
}
