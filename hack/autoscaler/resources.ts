import { quantityAsNumber } from '../../pkg/apis/quantity.ts';
import type { Node, Pod } from '../../pkg/apis/wire.ts';

/** Amounts by resource name, in base units: cores, bytes, pods. What is not named is zero. */
export type Resources = Readonly<Record<string, number>>;

/** The amounts of a list of quantities as objects carry them. Throws when one of them is no quantity. */
export function resourcesOf(quantities: Readonly<Record<string, string>> = {}): Resources {
  return Object.fromEntries(Object.entries(quantities).map(([name, quantity]) => [name, numberOf(name, quantity)]));
}

/** What a pod takes of a node: the requests of its containers, and one pod. */
export function requestsOf(pod: Pod): Resources {
  const containers = pod.spec?.containers ?? [];
  return containers.map(({ resources }) => resourcesOf(resources?.requests)).reduce(plus, { pods: 1 });
}

/** What a node has for pods. */
export function allocatableOf(node: Node): Resources {
  return resourcesOf(node.status?.allocatable);
}

/** The sum, resource by resource. */
export function plus(a: Resources, b: Resources): Resources {
  return combine(a, b, (left, right) => left + right);
}

/** The difference, resource by resource. */
export function minus(a: Resources, b: Resources): Resources {
  return combine(a, b, (left, right) => left - right);
}

/** Whether `wanted` is there. */
export function fits(wanted: Resources, free: Resources): boolean {
  return Object.entries(wanted).every(([name, amount]) => amount === 0 || amount <= (free[name] ?? 0) + ROUNDING);
}

/** Sums of tenths of a core are not exact. */
const ROUNDING = 1e-9;

function combine(a: Resources, b: Resources, operate: (left: number, right: number) => number): Resources {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return Object.fromEntries([...names].map((name) => [name, operate(a[name] ?? 0, b[name] ?? 0)]));
}

function numberOf(name: string, quantity: string): number {
  const amount = quantityAsNumber(quantity);
  if (amount === undefined) throw new Error(`${name}: ${quantity} is no quantity`);
  return amount;
}
