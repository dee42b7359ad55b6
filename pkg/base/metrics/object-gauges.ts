import { Gauge, type Registry } from 'prom-client';

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
  const registers = [registry];
  void new Gauge({
    name: `${prefix}_items_total`,
    help: itemsHelp,
    registers,
    collect() {
      try {
        this.set(list().length);
      } catch (err) {
        failures?.inc();
        throw err;
      }
    },
  });
  return (name, help, labelNames, series) => {
    void new Gauge({
      name: `${prefix}_${name}`,
      help,
      labelNames: [...labelNames],
      registers,
      collect() {
        this.reset();
        for (const object of list()) for (const [labels, value] of series(object)) this.set(labels, value);
      },
    });
  };
}
