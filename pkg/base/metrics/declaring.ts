import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** A metric whose name and labels are known; it is registered with its help. */
interface Named<M> {
  help(text: string): M;
}

export interface Declaring {
  readonly counter: <L extends string>(name: string, labelNames?: readonly L[]) => Named<Counter<L>>;
  readonly gauge: <L extends string>(name: string, labelNames?: readonly L[]) => Named<Gauge<L>>;
  readonly histogram: <L extends string>(
    name: string,
    labelNames?: readonly L[],
    buckets?: readonly number[],
  ) => Named<Histogram<L>>;
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
    counter: (name, labelNames = []) => ({ help: (help) => new Counter({ name, help, labelNames, registers }) }),
    gauge: (name, labelNames = []) => ({ help: (help) => new Gauge({ name, help, labelNames, registers }) }),
    histogram: (name, labelNames = [], buckets) => ({
      help: (help) => new Histogram({ name, help, labelNames, registers, ...(buckets && { buckets: [...buckets] }) }),
    }),
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
