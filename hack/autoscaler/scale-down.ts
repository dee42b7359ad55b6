import type { Pod } from '../../pkg/apis/wire.ts';
import { placeAll, type Place } from './placement.ts';
import { minus, plus, type Resources, requestsOf } from './resources.ts';

/** A node that is there, with its pods. */
export interface Occupied {
  readonly place: Place;
  /** All that it has for pods. */
  readonly allocatable: Resources;
  readonly pods: readonly Pod[];
}

/**
 * Nodes that are not needed: less than `threshold` of their CPU and memory is requested, and all their pods would find a place on
 * nodes that stay; a node that would take such pods stays. In the order given.
 */
export function unneeded(nodes: readonly Occupied[], threshold: number): readonly string[] {
  const going = new Set<string>();
  const taking = new Set<string>();
  let stay = nodes.map((node) => node.place);
  for (const { place: candidate, allocatable, pods } of nodes) {
    if (taking.has(candidate.name) || utilization(pods, allocatable) >= threshold) continue;
    const others = stay.filter(({ name }) => name !== candidate.name);
    const { placed, left } = placeAll(pods.filter(isMovable), others);
    if (left.length > 0) continue;
    going.add(candidate.name);
    for (const name of placed.values()) taking.add(name);
    // What moves takes room that the next candidate's pods no longer find.
    stay = others.map((other) => {
      const coming = pods.filter(({ metadata }) => placed.get(metadata.uid) === other.name);
      return { ...other, free: minus(other.free, coming.map(requestsOf).reduce(plus, {})) };
    });
  }
  return [...going];
}

/** Pods of DaemonSets go with their node. */
export function isMovable({ metadata }: Pod): boolean {
  return metadata.ownerReferences?.some(({ kind }) => kind === 'DaemonSet') !== true;
}

function utilization(pods: readonly Pod[], allocatable: Resources): number {
  const used = pods.map(requestsOf).reduce(plus, {});
  const shares = ['cpu', 'memory'].map((name) => (used[name] ?? 0) / (allocatable[name] ?? 1));
  return Math.max(...shares);
}
