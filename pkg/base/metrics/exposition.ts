import { Registry } from 'prom-client';

import type { MetricFailures } from './metric-failures.ts';

const OPEN_METRICS = 'application/openmetrics-text';

/** Where metrics are read. */
export type MetricSource = Pick<Registry, 'getMetricsAsArray' | 'getSingleMetric' | 'getSingleMetricAsString'>;

/** Reads each metric by its name. One that cannot be read is told to `failures`: the others are needed most when something is broken. */
export async function eachMetric(
  registry: MetricSource,
  failures: MetricFailures,
  read: (name: string) => Promise<void>,
): Promise<void> {
  for (const { name } of registry.getMetricsAsArray()) {
    // What it is about has ended meanwhile, such as a cell.
    if (registry.getSingleMetric(name) === undefined) continue;
    try {
      await read(name);
    } catch (err) {
      failures.failed(name, err);
    }
  }
}

/** The metrics in the text format 0.0.4, without those that cannot be read. */
export async function metricsText(registry: Registry, failures: MetricFailures): Promise<string> {
  const texts: string[] = [];
  await eachMetric(registry, failures, async (name) => void texts.push(await registry.getSingleMetricAsString(name)));
  return `${texts.join('\n\n')}\n`;
}

/**
 * Such a text as it is, whatever else `accept` asks for, as every reader of the original understands it; in OpenMetrics only for who names
 * it, and likes nothing better that we have.
 */
export function expose(text: string, accept = ''): { readonly type: string; readonly body: string } {
  if (!prefersOpenMetrics(accept)) return { type: Registry.PROMETHEUS_CONTENT_TYPE, body: text };
  return { type: Registry.OPENMETRICS_CONTENT_TYPE, body: toOpenMetrics(text) };
}

/** Whether an Accept header names OpenMetrics, at least as welcome as plain text. */
export function prefersOpenMetrics(accept: string): boolean {
  const weights = new Map<string, number>();
  for (const range of accept.toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    const weight = q === undefined ? 1 : Number(q);
    if (Number.isFinite(weight)) weights.set(type, Math.max(weights.get(type) ?? 0, weight));
  }
  const wanted = weights.get(OPEN_METRICS) ?? 0;
  return wanted > 0 && wanted >= (weights.get('text/plain') ?? 0);
}

/**
 * The same in OpenMetrics 1.0, which differs in what is said of a family: a counter is called without `_total`, one whose samples do not
 * end so cannot be called a counter, and quotes in help are escaped. There are no empty lines, and there is an end.
 */
function toOpenMetrics(text: string): string {
  const lines = text.split('\n').filter((line) => line !== '');
  const counters = new Set(lines.flatMap((line) => /^# TYPE (\S+) counter$/.exec(line)?.[1] ?? []));
  const told = lines.map((line) => {
    const [, keyword = '', name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (keyword === '') return line;
    const isCounter = counters.has(name);
    const family = isCounter ? name.replace(/_total$/, '') : name;
    if (keyword === 'HELP') return `# HELP ${family} ${rest.replaceAll('"', '\\"')}`;
    return `# TYPE ${family} ${isCounter && family === name ? 'unknown' : rest}`;
  });
  return `${told.join('\n')}\n# EOF\n`;
}
