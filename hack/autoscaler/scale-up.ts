import type { Pod } from '../../pkg/apis/wire.ts';
import { type Place, placeAll } from './placement.ts';
import { plus, requestsOf } from './resources.ts';

/** A node group that may grow. */
export interface Growable {
  readonly id: string;
  /** How many nodes it may still get. */
  readonly room: number;
  /** What its next node would be. */
  readonly template: Place;
}

/** Which group grows, by how many nodes, and which pods they are for. */
export interface ScaleUp {
  readonly id: string;
  readonly delta: number;
  readonly pods: readonly Pod[];
}

/**
 * The group whose new nodes would be filled best, as expander `least-waste` chooses; undefined when none of them helps. Pods that
 * it does not help are for the next loop, as with the autoscaler.
 */
export function planScaleUp(pending: readonly Pod[], groups: readonly Growable[]): ScaleUp | undefined {
  const options = groups.flatMap((group) => {
    const option = fill(group, pending);
    return option === undefined ? [] : [option];
  });
  return options.toSorted((a, b) => a.waste - b.waste)[0];
}

function fill({ id, room, template }: Growable, pending: readonly Pod[]): (ScaleUp & { waste: number }) | undefined {
  const nodes = Array.from({ length: Math.min(room, pending.length) }, (_, i) => ({ ...template, name: `${id}-${i}` }));
  const { placed } = placeAll(pending, nodes);
  const delta = new Set(placed.values()).size;
  if (delta === 0) return undefined;
  const pods = pending.filter(({ metadata }) => placed.has(metadata.uid));
  const used = pods.map(requestsOf).reduce(plus, {});
  const shares = ['cpu', 'memory'].map((name) => (used[name] ?? 0) / (delta * (template.free[name] ?? 1)));
  return { id, delta, pods, waste: 1 - shares.reduce((sum, share) => sum + share, 0) / shares.length };
}
