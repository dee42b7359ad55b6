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

/** So many cells have series of their own; those of the others are one, without the label. */
export const NAMED_CELLS = 50;

const LABEL = 'cell';
const COUNTED: ReadonlySet<string> = new Set(['counter', 'histogram']);
/** What is read of so many cells keeps the event loop for some milliseconds. */
const AT_ONCE = 8;

/**
 * The metrics of a process with cells as text: those of the process, and those of each cell with its namespace as label `cell`. Series of cells
 * without a label of their own are added up, also with those of the process: of counts the sum, of states the worst, of moments the first. A
 * cell keeps what it has, a label or none, and what one without a label has counted stays in the sum when it ends: counts never fall.
 */
export class MergedMetrics {
  readonly #named = new Set<string>();
  readonly #others = new Set<string>();
  readonly #retained = new Sums();
  #last: Promise<unknown> = Promise.resolve();

  /** One after the other: a cell that ends while it is scraped would be counted twice. */
  text(scraped: ScrapedProcess): Promise<string> {
    return this.#inTurn(() => this.#text(scraped));
  }

  /** A cell ends; its registry can still be read. */
  ended(cell: string, registry: Registry): Promise<void> {
    return this.#inTurn(() => this.#retain(cell, registry));
  }

  #inTurn<T>(what: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(what);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #text({ process, cells, failures, breathe }: ScrapedProcess): Promise<string> {
    const ordered = [...cells].toSorted(([a], [b]) => (a < b ? -1 : 1));
    this.#divide(ordered.map(([cell]) => cell));
    const families = new Families();
    const others = new Sums();
    // To Prometheus an empty label is none: what the process counts and what those cells count would be the same series twice.
    if (this.#others.size > 0 || !this.#retained.isEmpty) others.add(await readAll(process, failures));
    else await families.add(process, failures);
    for (const [i, [cell, registry]] of ordered.entries()) {
      if (i % AT_ONCE === 0) await breathe();
      if (this.#others.has(cell)) others.add(await readAll(registry, failures));
      else {
        registry.setDefaultLabels({ [LABEL]: cell });
        await families.add(registry, failures);
      }
    }
    others.addTo(this.#retained);
    await families.add(others.registry(), failures);
    return families.text();
  }

  async #retain(cell: string, registry: Registry): Promise<void> {
    if (!this.#others.delete(cell)) return;
    // What could not be read was told of at each scrape.
    const failures = { failed: () => undefined };
    this.#retained.add((await readAll(registry, failures)).filter(isCounted));
  }

  /** The first by name have a label, of those that come while there is room. */
  #divide(cells: readonly string[]): void {
    const present = new Set(cells);
    for (const cell of this.#named) if (!present.has(cell)) this.#named.delete(cell);
    for (const cell of this.#others) if (!present.has(cell)) this.#others.delete(cell);
    for (const cell of cells) {
      if (this.#named.has(cell) || this.#others.has(cell)) continue;
      (this.#named.size < NAMED_CELLS ? this.#named : this.#others).add(cell);
    }
  }
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

  get isEmpty(): boolean {
    return this.#byName.size === 0;
  }

  /** Adds what is retained of series that there are; of the others nothing is retained any more. */
  addTo(retained: Sums): void {
    for (const [name, metric] of retained.#byName) {
      const present = this.#byName.get(name)?.sums;
      for (const [key, value] of metric.sums) {
        const sum = present?.get(key);
        if (sum === undefined) metric.sums.delete(key);
        else sum.value += value.value;
      }
      if (metric.sums.size === 0) retained.#byName.delete(name);
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

function isCounted({ type }: Read): boolean {
  return COUNTED.has(String(type));
}

/** What a value of several cells is. What happened longest ago is the worst. */
function uniting(metric: Read): (a: number, b: number) => number {
  const { name } = metric;
  if (isCounted(metric)) return (a, b) => a + b;
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
