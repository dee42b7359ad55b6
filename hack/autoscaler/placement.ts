import type { Pod, Taint } from '../../pkg/apis/wire.ts';
import { fits, minus, type Resources, requestsOf } from './resources.ts';

/** A node, there or yet to come, as far as it decides where pods may run. */
export interface Place {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly free: Resources;
}

/** Where each pod would go, and what found no place. */
export interface Placement {
  /** Name of the place, by UID of the pod. */
  readonly placed: ReadonlyMap<string, string>;
  readonly left: readonly Pod[];
}

/** Whether the pod may run there and fits: node selector, taints and requests, as the scheduler's filters see them. */
function accepts(place: Place, pod: Pod): boolean {
  const selector = Object.entries(pod.spec?.nodeSelector ?? {});
  return (
    selector.every(([key, value]) => place.labels[key] === value) &&
    place.taints.every((taint) => taint.effect === 'PreferNoSchedule' || tolerates(pod, taint)) &&
    fits(requestsOf(pod), place.free)
  );
}

/** First fit, in the order given. */
export function placeAll(pods: readonly Pod[], places: readonly Place[]): Placement {
  const free = new Map(places.map((each) => [each.name, each.free]));
  const placed = new Map<string, string>();
  const left: Pod[] = [];
  for (const pod of pods) {
    const found = places.find((each) => accepts({ ...each, free: free.get(each.name) ?? {} }, pod));
    if (found === undefined) {
      left.push(pod);
      continue;
    }
    placed.set(pod.metadata.uid, found.name);
    free.set(found.name, minus(free.get(found.name) ?? {}, requestsOf(pod)));
  }
  return { placed, left };
}

function tolerates(pod: Pod, taint: Taint): boolean {
  return (pod.spec?.tolerations ?? []).some(
    ({ key, operator = 'Equal', value = '', effect }) =>
      (key === undefined || key === taint.key) &&
      (effect === undefined || effect === taint.effect) &&
      (operator === 'Exists' || value === (taint.value ?? '')),
  );
}
