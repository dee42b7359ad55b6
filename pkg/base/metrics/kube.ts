import type { Counter, Histogram, Registry } from 'prom-client';

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
  const { counter, histogram, series } = declaring(registry);
  const watchAges = new Map<{ kind: string; cluster: string }, () => number>();
  const credentialAges = new Map<string, () => number>();
  series(
    'machinist_cache_age_seconds',
    'Seconds since the last event or bookmark of the watch of a cache.',
    ['kind', 'cluster'],
    () => [...watchAges].map(([labels, ageSeconds]) => [labels, ageSeconds()]),
  );
  series(
    'machinist_kube_credentials_age_seconds',
    'Seconds since the credentials for the cluster were last loaded (if never: since they were requested); they are reloaded every minute.',
    ['cluster'],
    () => [...credentialAges].map(([cluster, ageSeconds]) => [{ cluster }, ageSeconds()]),
  );
  return {
    requests: counter('rest_client_requests_total', ['code', 'method', 'host']).help(
      'Number of HTTP requests, partitioned by status code, method, and host.',
    ),
    latency: histogram('rest_client_request_latency_seconds', ['verb', 'url'], LATENCY_BUCKETS).help(
      'Request latency in seconds. Broken down by verb and URL.',
    ),
    throttled: histogram('machinist_kube_throttle_wait_seconds', [], LATENCY_BUCKETS).help(
      'Seconds that requests waited because of --kube-api-qps.',
    ),
    lists: counter('machinist_cache_lists_total', ['kind', 'reason']).help('Full lists by caches, by reason.'),
    watches: counter('machinist_cache_watches_total', ['kind', 'result']).help('Watches that ended, by result.'),
    handlerErrors: counter('machinist_cache_handler_errors_total', ['kind']).help('Cache handlers that failed.'),
    credentialLoads: counter('machinist_kube_credential_loads_total', ['cluster', 'result']).help(
      'Loads of the credentials for the cluster (kubeconfig, token file, credential plugin), by result (ok, failed).',
    ),
    credentialAge: (cluster, ageSeconds) => void credentialAges.set(cluster, ageSeconds),
    watchAge(labels, ageSeconds) {
      const own = { ...labels };
      watchAges.set(own, ageSeconds);
      return () => void watchAges.delete(own);
    },
  };
}
