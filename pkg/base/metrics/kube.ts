import { Gauge, type Counter, type Histogram, type Registry } from 'prom-client';

import { declaring } from './declaring.ts';

/** Ten buckets from 1 ms, each twice the one before, as the original has. */
const LATENCY_BUCKETS = Array.from({ length: 10 }, (_, i) => 0.001 * 2 ** i);

export interface KubeMetrics {
  /** Answers by HTTP status (`<error>` without one). */
  readonly requests: Counter<'code' | 'method' | 'host'>;
  /** Time to the answer, by HTTP method and URL with namespace and name left open. */
  readonly latency: Histogram<'verb' | 'url'>;
  /** Time spent waiting for our own rate limit. */
  readonly throttled: Histogram;
  /** Full lists that a cache had to make, by why. */
  readonly lists: Counter<'kind' | 'reason'>;
  readonly watches: Counter<'kind' | 'result'>;
  /** Handlers of changes that threw. */
  readonly handlerErrors: Counter<'kind'>;
  readonly credentialLoads: Counter<'cluster' | 'result'>;
  /** Adds one cluster to `machinist_kube_credentials_age_seconds`; `ageSeconds` is asked at each scrape. */
  credentialAge(cluster: string, ageSeconds: () => number): void;
  /** Adds one cache to `machinist_cache_age_seconds`; `ageSeconds` is asked at each scrape. Returns what removes it. */
  watchAge(labels: { kind: string; cluster: string }, ageSeconds: () => number): () => void;
}

export function kubeMetrics(registry: Registry): KubeMetrics {
  const { counter, histogram } = declaring(registry);
  const registers = [registry];
  const ages = new Map<{ kind: string; cluster: string }, () => number>();
  const age = new Gauge({
    name: 'machinist_cache_age_seconds',
    help: 'Seconds since the last event or bookmark of the watch of a cache.',
    labelNames: ['kind', 'cluster'],
    registers,
    collect() {
      this.reset();
      for (const [labels, seconds] of ages) this.set(labels, seconds());
    },
  });

  const credentialAges = new Map<string, () => number>();
  const credentialsAge = new Gauge({
    name: 'machinist_kube_credentials_age_seconds',
    help: 'Seconds since the credentials for the cluster were last loaded (if never: since they were requested); they are reloaded every minute.',
    labelNames: ['cluster'],
    registers,
    collect() {
      for (const [cluster, seconds] of credentialAges) this.set({ cluster }, seconds());
    },
  });

  return {
    requests: counter(
      'rest_client_requests_total',
      'Number of HTTP requests, partitioned by status code, method, and host.',
      ['code', 'method', 'host'],
    ),
    latency: histogram(
      'rest_client_request_latency_seconds',
      'Request latency in seconds. Broken down by verb and URL.',
      { labelNames: ['verb', 'url'], buckets: LATENCY_BUCKETS },
    ),
    throttled: histogram(
      'machinist_kube_throttle_wait_seconds',
      'Seconds that requests waited because of --kube-api-qps.',
      {
        buckets: LATENCY_BUCKETS,
      },
    ),
    lists: counter('machinist_cache_lists_total', 'Full lists by caches, by reason.', ['kind', 'reason']),
    watches: counter('machinist_cache_watches_total', 'Watches that ended, by result.', ['kind', 'result']),
    handlerErrors: counter('machinist_cache_handler_errors_total', 'Cache handlers that failed.', ['kind']),
    credentialLoads: counter(
      'machinist_kube_credential_loads_total',
      'Loads of the credentials for the cluster (kubeconfig, token file, credential plugin), by result (ok, failed).',
      ['cluster', 'result'],
    ),
    credentialAge(cluster, ageSeconds) {
      credentialAges.set(cluster, ageSeconds);
      credentialsAge.set({ cluster }, ageSeconds());
    },
    watchAge(labels, ageSeconds) {
      const own = { ...labels };
      ages.set(own, ageSeconds);
      return () => {
        ages.delete(own);
        age.remove(own);
      };
    },
  };
}
