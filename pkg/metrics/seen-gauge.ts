import { Gauge, type Registry } from 'prom-client';

/** Declares a gauge of how many things there are with the same labels; `list` gives the labels of each thing at each scrape. */
export function seenGauge<L extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly L[],
  list: () => Iterable<Readonly<Record<L, string>>>,
): void {
  void new Gauge({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      for (const labels of list()) this.inc(labels, 1);
    },
  });
}
