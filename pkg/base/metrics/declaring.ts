import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export interface Declaring {
  readonly counter: <L extends string>(name: string, help: string, labelNames?: readonly L[]) => Counter<L>;
  readonly gauge: <L extends string>(name: string, help: string, labelNames?: readonly L[]) => Gauge<L>;
  readonly histogram: <L extends string>(name: string, help: string, more?: Buckets<L>) => Histogram<L>;
}

interface Buckets<L> {
  readonly labelNames?: readonly L[];
  readonly buckets?: readonly number[];
}

export function declaring(registry: Registry): Declaring {
  const registers = [registry];
  return {
    counter: (name, help, labelNames = []) => new Counter({ name, help, labelNames, registers }),
    gauge: (name, help, labelNames = []) => new Gauge({ name, help, labelNames, registers }),
    histogram: (name, help, { labelNames = [], buckets } = {}) =>
      new Histogram({ name, help, labelNames, registers, ...(buckets && { buckets: [...buckets] }) }),
  };
}
