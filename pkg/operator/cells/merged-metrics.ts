import {
  AggregatorRegistry,
  type Metric,
  type MetricObjectWithValues,
  type MetricValue,
  type Registry,
} from 'prom-client';

import type { MetricFailures } from '../../base/metrics/metric-failures.ts';

/** A metric as it is read. */
type Read = MetricObjectWithValues<MetricValue<string>>;

const COUNTED: ReadonlySet<string> = new Set(['counter', 'histogram']);

/** So many cells, the first by name, have series of their own; those of the others are one, with an empty label. */
export const NAMED_CELLS = 50;

/**
 * The metrics of a process with cells: what the process counts, and what each cell counts, with its namespace as label `cell`. Of the cells
 * without a label of their own moments are left out, which mean nothing when they are added up. What cannot be read is told to `failures`.
 */
export async function mergedMetrics(
  process: Registry,
  cells: ReadonlyMap<string, Registry>,
  failures: MetricFailures,
): Promise<Registry> {
  const ordered = [...cells].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const ofCells = await Promise.all(
    ordered.map(async ([cell, registry], i) =>
      i < NAMED_CELLS
        ? labelled(await readAll(registry, failures), cell)
        : labelled(await readAll(registry, failures), '').filter(({ name }) => !name.endsWith('_timestamp_seconds')),
    ),
  );
  return AggregatorRegistry.aggregate([await readAll(process, failures), ...ofCells].map(combined));
}

/** Of a state, the worst of several cells; of what is counted, the sum. Series with different labels stay as they are. */
function combined(metrics: readonly Read[]): Read[] {
  return metrics.map((metric) => ({ ...metric, aggregator: COUNTED.has(String(metric.type)) ? 'sum' : 'max' }));
}

async function readAll(registry: Registry, failures: MetricFailures): Promise<readonly Read[]> {
  const read = registry.getMetricsAsArray().map(async ({ name }) => {
    try {
      const metric: Metric | undefined = registry.getSingleMetric(name);
      return metric === undefined ? [] : [await metric.get()];
    } catch (err) {
      failures.failed(name, err);
      return [];
    }
  });
  return (await Promise.all(read)).flat();
}

function labelled(metrics: readonly Read[], cell: string): Read[] {
  return metrics.map((metric) => ({
    ...metric,
    values: metric.values.map((value) => ({ ...value, labels: { ...value.labels, cell } })),
  }));
}
