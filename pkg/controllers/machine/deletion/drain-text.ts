import type { BlockedPod, DrainProgress } from '../../../drain/drain.ts';

/** So many pods are named; more would not fit into anybody's head. */
const MOST_NAMED = 5;

const REASONS: Record<BlockedPod['reason'], (detail: string) => string> = {
  'disruption-budget': (detail) => `PodDisruptionBudget ${detail}`,
  'misconfigured-disruption-budget': (detail) => `PodDisruptionBudget ${detail} allows no eviction ever`,
  terminating: () => 'terminating',
  'volume-detach': (detail) => `volume ${detail} is attached`,
  'volume-reattach': (detail) => `volume ${detail} is not attached elsewhere yet`,
  error: (detail) => detail,
};

/** What a drain waits for: `Waiting for 3 pods: ns/a (PodDisruptionBudget x), ns/b (terminating).` */
export function describeProgress({ remainingPods, blocked }: DrainProgress): string {
  const pods = `${remainingPods} ${remainingPods === 1 ? 'pod' : 'pods'}`;
  if (blocked.length === 0) return `Waiting for ${pods}.`;
  const named = blocked.slice(0, MOST_NAMED).map(({ pod, reason, detail }) => `${pod} (${REASONS[reason](detail)})`);
  const more = blocked.length > MOST_NAMED ? `, and ${blocked.length - MOST_NAMED} more` : '';
  return `Waiting for ${pods}: ${named.join(', ')}${more}.`;
}
