import { Failure } from './failure.ts';
import { at, isMembers } from './json.ts';
import type { Kind } from './kinds.ts';
import type { Objects } from './objects.ts';
import { labelsSelected } from './label-match.ts';
import type { StoredObject } from './stored-object.ts';

const RETRY_S = 10;

/**
 * Takes a disruption from the budget of a pod that is to be evicted. Returns whether the pod is missed, as one that runs is. Throws a
 * Failure where the budget has none left.
 */
export function takeDisruption(objects: Objects, budgets: Kind, pod: StoredObject, now: string): boolean {
  const phase = at(pod, ['status', 'phase']);
  // What does not run is not missed.
  if (phase === 'Pending' || phase === 'Succeeded' || phase === 'Failed') return false;
  if (pod.metadata.deletionTimestamp !== undefined) return false;
  const { namespace, labels = {} } = pod.metadata;
  const found = objects
    .of(budgets)
    .list()
    .filter((one) => one.metadata.namespace === namespace && labelsSelected(at(one, ['spec', 'selector']), labels));
  const [budget, another] = found;
  if (budget === undefined) return true;
  if (another !== undefined) {
    throw new Failure(
      500,
      'InternalError',
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    );
  }
  take(objects, budgets, budget, pod, now);
  return true;
}

function take(objects: Objects, budgets: Kind, budget: StoredObject, pod: StoredObject, now: string): void {
  const status = isMembers(budget['status']) ? budget['status'] : {};
  const number = (name: string): number => Number(status[name] ?? 0);
  const refusal = "Cannot evict pod as it would violate the pod's disruption budget.";
  const { name } = budget.metadata;
  if (number('observedGeneration') < (budget.metadata.generation ?? 0)) {
    throw refused(refusal, `The disruption budget ${name} is still being processed by the server.`, RETRY_S);
  }
  if (!isReady(pod) && number('currentHealthy') >= number('desiredHealthy') && number('desiredHealthy') > 0) return;
  if (number('disruptionsAllowed') <= 0) {
    const needs = `needs ${number('desiredHealthy')} healthy pods and has ${number('currentHealthy')} currently`;
    throw refused(refusal, `The disruption budget ${name} ${needs}`);
  }
  const disruptedPods = {
    ...(isMembers(status['disruptedPods']) ? status['disruptedPods'] : {}),
    [pod.metadata.name]: now,
  };
  objects.put(budgets, {
    ...budget,
    status: { ...status, disruptionsAllowed: number('disruptionsAllowed') - 1, disruptedPods },
  });
}

function refused(message: string, why: string, retryAfterSeconds?: number): Failure {
  const causes = [{ reason: 'DisruptionBudget', message: why }];
  return new Failure(429, 'TooManyRequests', message, {
    details: { causes, ...(retryAfterSeconds && { retryAfterSeconds }) },
  });
}

/** What an eviction says of a pod before it deletes it. */
export function withDisruption(pod: StoredObject, now: string): StoredObject {
  const status = isMembers(pod['status']) ? pod['status'] : {};
  const conditions = Array.isArray(status['conditions']) ? (status['conditions'] as unknown[]) : [];
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
    lastTransitionTime: now,
  };
  return { ...pod, status: { ...status, conditions: [...conditions, condition] } };
}

function isReady(pod: StoredObject): boolean {
  const conditions = at(pod, ['status', 'conditions']);
  return (
    Array.isArray(conditions) &&
    conditions.some((one) => at(one, ['type']) === 'Ready' && at(one, ['status']) === 'True')
  );
}
