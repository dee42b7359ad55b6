import { labelMatcher } from '../apis/label-selector.ts';
import type { LabelSelector } from '../apis/meta.ts';
import type { Pod, PodDisruptionBudget } from '../apis/wire.ts';

/**
 * The budget that guards this pod: the first, by name, in its namespace whose selector matches. In policy/v1 an empty
 * selector matches every pod, an absent one none. Throws InvalidSelectorError.
 */
export function budgetOf(pod: Pod, budgets: readonly PodDisruptionBudget[]): PodDisruptionBudget | undefined {
  return (
    budgets
      .filter(({ metadata }) => metadata.namespace === pod.metadata.namespace)
      .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
      // The server lets no other operators through than those of our type.
      .find(({ spec }) => labelMatcher(spec?.selector as LabelSelector | undefined)(pod.metadata.labels))
  );
}

/**
 * Whether the budget forbids every eviction although all its pods are well, so that waiting cannot help: it asks for
 * zero voluntary disruptions. A budget whose status is behind its spec is given the benefit of the doubt.
 */
export function isMisconfigured({ metadata, status }: PodDisruptionBudget): boolean {
  if (status === undefined || status.observedGeneration !== metadata.generation) return false;
  const { expectedPods = 0, currentHealthy = 0, disruptionsAllowed = 0, disruptedPods } = status;
  const nothingUnderWay = Object.keys(disruptedPods ?? {}).length === 0;
  return expectedPods > 0 && currentHealthy >= expectedPods && nothingUnderWay && disruptionsAllowed === 0;
}
