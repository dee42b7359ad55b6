import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';
import type { ScrapeFailures } from './scrape-failures.ts';

/** Declares one gauge whose series are read from all objects of a kind at each scrape. */
export type DeclareGauge<T> = <L extends string>(
  name: string,
  help: string,
  labelNames: readonly L[],
  series: (object: T) => Iterable<readonly [Partial<Record<L, string>>, number]>,
) => void;

/**
 * Gauges named `<prefix>_<name>`, read from `list` at each scrape, so that nothing is left of an object that is gone; and
 * `<prefix>_items_total`, their number; a scrape at which they cannot be listed is told to `failures`. An object that was stored without spec shows as one whose spec is empty.
 */
export function objectGauges<T extends { spec: object }>(
  registry: Registry,
  prefix: string,
  itemsHelp: string,
  list: () => readonly T[],
  failures?: ScrapeFailures,
): DeclareGauge<T> {
  const { series } = declaring(registry);
  series(`${prefix}_items_total`, itemsHelp, [], () => {
    try {
      return [[{}, list().length]];
    } catch (err) {
      failures?.inc();
      throw err;
    }
  });
  return (name, help, labelNames, of) =>
    series(`${prefix}_${name}`, help, labelNames, () => list().flatMap((one) => [...of(one)]));
}
