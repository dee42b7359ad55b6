import type { CachedKind } from '../cache/barrier.ts';
import { reachPresent } from '../cache/barrier.ts';
import type { Cluster } from '../gate/gate.ts';
import type { ProbedCluster } from '../gate/cluster-freeze.ts';

/**
 * How clusters are probed. One that comes back counts as alive only when its own caches have caught up; those of others are
 * none of its business, or a target that is gone for good would keep the control cluster frozen.
 */
export function probesOf(
  clusters: readonly { readonly probed: ProbedCluster }[],
  caches: readonly { readonly cluster: Cluster; readonly kinds: readonly CachedKind[] }[],
): ProbedCluster[] {
  return [...new Set(clusters)].map(({ probed }) => {
    const kinds = caches.filter(({ cluster }) => cluster === probed.cluster).flatMap((one) => one.kinds);
    return { ...probed, catchUp: (signal) => reachPresent(kinds, signal) };
  });
}
