import type { Registry } from 'prom-client';

import type { Logger } from '../log/logger.ts';
import { declaring } from './declaring.ts';

export interface MetricFailures {
  failed(metric: string, err: unknown): void;
}

/** Declares in `registry` how often metrics could not be read; each is told in the log once, as a scrape is for anyone to repeat. */
export function metricFailures(registry: Registry, log: Logger): MetricFailures {
  const counter = declaring(registry)
    .counter('machinist_scrape_failures_total', ['metric'])
    .help('Scrapes without a metric because it could not be read, by name of the metric.');
  const told = new Set<string>();
  return {
    failed(metric, err) {
      counter.inc({ metric });
      if (!told.has(metric)) log.warn({ metric, err }, 'could not read a metric; omitting it');
      told.add(metric);
    },
  };
}
