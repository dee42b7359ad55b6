import { Counter, type Registry } from 'prom-client';

/** Declares the metric of log lines in `registry`; `lost` is asked at each scrape. */
export function logMetrics(registry: Registry, lost: () => number): void {
  void new Counter({
    name: 'machinist_log_lines_lost_total',
    help: 'Log lines that were dropped because standard output was blocked and 4 MiB were already buffered.',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(lost());
    },
  });
}
