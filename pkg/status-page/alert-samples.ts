import type { Registry } from 'prom-client';

import type { Clock } from '../base/clock/clock.ts';
import { ALERT_METRICS, type Sample } from '../fleet/alerts.ts';

/** Metrics of which single values are looked at. */
const METRICS: ReadonlySet<string> = new Set([
  ...ALERT_METRICS,
  'machinist_driver_up',
  'mcm_cloud_api_driver_requests_running',
]);
/** Some are counted over all machines when they are read. */
const GOOD_FOR_MS = 5_000;

/** The values of metrics that alerts are decided by, as a scrape would find them. */
export class AlertSamples {
  readonly #deps: { readonly registry: Registry; readonly clock: Pick<Clock, 'monotonicMs'> };
  #read: { readonly samples: readonly Sample[]; readonly atMs: number } | undefined;

  constructor(deps: { registry: Registry; clock: Pick<Clock, 'monotonicMs'> }) {
    this.#deps = deps;
  }

  async read(): Promise<readonly Sample[]> {
    const { registry, clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (this.#read !== undefined && nowMs - this.#read.atMs < GOOD_FOR_MS) return this.#read.samples;
    const samples: Sample[] = [];
    for (const name of METRICS) {
      const metric = await registry.getSingleMetric(name)?.get();
      for (const { value, labels } of metric?.values ?? []) {
        const texts = Object.entries(labels).map(([label, text]) => [label, String(text)]);
        samples.push({ name, value, labels: Object.fromEntries(texts) as Record<string, string> });
      }
    }
    this.#read = { samples, atMs: nowMs };
    return samples;
  }
}
