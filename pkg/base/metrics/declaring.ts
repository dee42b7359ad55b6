import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export interface Declaring {
  readonly counter: <L extends string>(name: string, help: string, labelNames?: readonly L[]) => Counter<L>;
  readonly gauge: <L extends string>(name: string, help: string, labelNames?: readonly L[]) => Gauge<L>;
  readonly histogram: <L extends string>(name: string, help: string, more?: Buckets<L>) => Histogram<L>;
  /** A gauge that is read at each scrape, so that nothing is left of what is gone. */
  readonly series: <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    read: () => Iterable<readonly [labels: Partial<Record<L, string>>, value: number]>,
  ) => void;
  /** The same, of the number of things with equal labels; `read` returns the labels of each. */
  readonly counted: <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    read: () => Iterable<Readonly<Record<L, string>>>,
  ) => void;
}

interface Buckets<L> {
  readonly labelNames?: readonly L[];
  readonly buckets?: readonly number[];
}

export function declaring(registry: Registry): Declaring {
  const registers = [registry];
  const read = <L extends string>(name: string, help: string, labelNames: readonly L[], show: (to: Gauge<L>) => void) =>
    void new Gauge({
      name,
      help,
      labelNames,
      registers,
      collect() {
        this.reset();
        show(this);
      },
    });
  return {
    counter: (name, help, labelNames = []) => new Counter({ name, help, labelNames, registers }),
    gauge: (name, help, labelNames = []) => new Gauge({ name, help, labelNames, registers }),
    histogram: (name, help, { labelNames = [], buckets } = {}) =>
      new Histogram({ name, help, labelNames, registers, ...(buckets && { buckets: [...buckets] }) }),
    series: (name, help, labelNames, values) =>
      read(name, help, labelNames, (gauge) => {
        for (const [labels, value] of values()) gauge.set(labels, value);
      }),
    counted: (name, help, labelNames, things) =>
      read(name, help, labelNames, (gauge) => {
        for (const labels of things()) gauge.inc(labels);
      }),
  };
}
