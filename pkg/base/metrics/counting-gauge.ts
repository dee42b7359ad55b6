import { Gauge, type Registry } from 'prom-client';

/** Declares a gauge that counts objects with equal labels; `list` returns the labels of each object at each scrape. */
export function countingGauge<L extends string>(
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
