import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client';

import { eachMetric, type MetricSource } from '../../base/metrics/exposition.ts';
import type { MetricFailures } from '../../base/metrics/metric-failures.ts';

/** A metric as it is read. */
type Read = MetricObjectWithValues<MetricValue<string>>;

/** What is scraped. */
export interface ScrapedProcess {
  /** What the process counts. */
  readonly process: Registry;
  /** What each cell counts, by its namespace. */
  readonly cells: ReadonlyMap<string, Registry>;
  /** Told of what cannot be read. */
  readonly failures: MetricFailures;
  /** Lets the event loop do something else. */
  readonly breathe: () => Promise<void>;
}

/** So many cells, the first by name, have series of their own; those of the others are one, without the label. */
export const NAMED_CELLS = 50;

const LABEL = 'cell';
const COUNTED: ReadonlySet<string> = new Set(['counter', 'histogram']);
/** What is read of so many cells keeps the event loop for some milliseconds. */
const AT_ONCE = 8;

/**
 * The metrics of a process with cells as text: those of the process, and those of each cell with its namespace as label `cell`. Series of cells
 * without a label of their own are added up, also with those of the process: of counts the sum, of states the worst, of moments the first.
 */
export async function mergedMetrics({ process, cells, failures, breathe }: ScrapedProcess): Promise<string> {
  const ordered = [...cells].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const families = new Families();
  const others = new Sums();
  // To Prometheus an empty label is none: what the process counts and what those cells count would be the same series twice.
  if (ordered.length > NAMED_CELLS) others.add(await readAll(process, failures));
  else await families.add(process, failures);
  for (const [i, [cell, registry]] of ordered.entries()) {
    if (i % AT_ONCE === 0) await breathe();
    if (i >= NAMED_CELLS) others.add(await readAll(registry, failures));
    else {
      registry.setDefaultLabels({ [LABEL]: cell });
      await families.add(registry, failures);
    }
  }
  await families.add(others.registry(), failures);
  return families.text();
}

/** Text of metrics, those of a name together, as the format wants them. */
class Families {
  readonly #byName = new Map<string, { readonly head: string; readonly samples: string[] }>();

  async add(registry: MetricSource, failures: MetricFailures): Promise<void> {
    await eachMetric(registry, failures, async (name) => {
      const text = await registry.getSingleMetricAsString(name);
      // HELP and TYPE, a line each.
      const end = text.indexOf('\n', text.indexOf('\n') + 1);
      const [head, samples] = end === -1 ? [text, []] : [text.slice(0, end), [text.slice(end + 1)]];
      const known = this.#byName.get(name);
      if (known === undefined) this.#byName.set(name, { head, samples });
      else known.samples.push(...samples);
    });
  }

  text(): string {
    const texts = [...this.#byName.values()].map(({ head, samples }) => [head, ...samples].join('\n'));
    return `${texts.join('\n\n')}\n`;
  }
}

/** Metrics of several cells as if they were of one. */
class Sums {
  readonly #byName = new Map<string, Read & { readonly sums: Map<string, MetricValue<string>> }>();

  add(metrics: readonly Read[]): void {
    for (const metric of metrics) {
      const known = this.#byName.get(metric.name) ?? { ...metric, sums: new Map() };
      this.#byName.set(metric.name, known);
      const unite = uniting(metric);
      for (const value of metric.values) {
        const key = keyOf(value);
        const sum = known.sums.get(key);
        if (sum === undefined) known.sums.set(key, { ...value });
        else sum.value = unite(sum.value, value.value);
      }
    }
  }

  registry(): MetricSource {
    const metrics = [...this.#byName.values()].map(({ sums, ...metric }) => ({
      ...metric,
      values: [...sums.values()],
    }));
    return AggregatorRegistry.aggregate([metrics]);
  }
}

/** What a value of several cells is. What happened longest ago is the worst. */
function uniting({ name, type }: Read): (a: number, b: number) => number {
  if (COUNTED.has(String(type))) return (a, b) => a + b;
  return name.endsWith('_timestamp_seconds') ? Math.min : Math.max;
}

/** The same for the same series, in whatever order its labels were named. */
function keyOf({ metricName = '', labels }: MetricValue<string> & { readonly metricName?: string }): string {
  const named = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [metricName, ...named.flat()].join('\u0000');
}

async function readAll(registry: Registry, failures: MetricFailures): Promise<readonly Read[]> {
  const read: Read[] = [];
  await eachMetric(registry, failures, async (name) => {
    const metric = await registry.getSingleMetric(name)?.get();
    if (metric !== undefined) read.push(metric);
  });
  return read;
}
