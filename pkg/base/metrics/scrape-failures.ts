import { Counter, type Registry } from 'prom-client';

import { declaring } from './declaring.ts';

const NAME = 'mcm_misc_scrape_failure_total';
/** The original's program that counts these kinds, whichever of ours does. */
const BINARY = 'machine-controller-manager';

/** Counts scrapes at which the objects of one kind could not be counted. */
export interface ScrapeFailures {
  inc(): void;
}

/** Declares the counter in `registry`, once for all kinds; each kind shows from the beginning, with 0. */
export function scrapeFailures(registry: Registry, kind: string): ScrapeFailures {
  const declared = registry.getSingleMetric(NAME);
  const counter =
    declared instanceof Counter
      ? declared
      : declaring(registry)
          .counter(NAME, ['kind', 'binary'])
          .help('Scrapes at which the objects of a kind could not be counted.');
  const labels = { kind, binary: BINARY };
  counter.inc(labels, 0);
  return { inc: () => counter.inc(labels) };
}
