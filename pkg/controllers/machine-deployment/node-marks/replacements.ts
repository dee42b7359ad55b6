import { nodeNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { fromTimestamp, MINUTE_MS, type Clock } from '../../../base/clock/clock.ts';
import { isTerminating } from '../../replicas/machine-state.ts';
import { markedAtMs } from '../../replicas/victim-order.ts';

/** How much longer a Machine is kept from the autoscaler when the one that it replaces is gone: its Node has to join, and pods to find it. */
export const GRACE_MS = 10 * MINUTE_MS;

/**
 * Which Machines have come in place of others: until those are gone, and for a while after, the autoscaler must not take them for a
 * surplus. That the others are gone is remembered in memory only: a manager that starts anew gives no grace.
 */
export class Replacements {
  readonly #clock: Clock;
  /** Until when a Machine counts, monotonic, by UID, of each owner; Infinity as long as the one is there that it replaces. */
  readonly #untilMs = new Map<string, ReadonlyMap<string, number>>();

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /** Looks at the Machines of the sets of one owner; returns the UIDs of those that have come in place of others. */
  see(owner: string, sets: readonly (readonly Machine[])[]): ReadonlySet<string> {
    const nowMs = this.#clock.monotonicMs();
    const before = this.#untilMs.get(owner);
    const present = new Set(sets.flatMap(comeInPlace));
    const untilMs = new Map<string, number>();
    for (const machine of sets.flat()) {
      const { uid } = machine.metadata;
      const knownMs = before?.get(uid) ?? 0;
      const atMs = present.has(machine) ? Infinity : knownMs === Infinity ? nowMs + GRACE_MS : knownMs;
      if (atMs > nowMs && !isTerminating(machine)) untilMs.set(uid, atMs);
    }
    if (untilMs.size === 0) this.#untilMs.delete(owner);
    else this.#untilMs.set(owner, untilMs);
    return new Set(untilMs.keys());
  }

  /** After how many milliseconds the first Machine of the owner counts no more; undefined when none does, or others are still there. */
  dueInMs(owner: string): number | undefined {
    const soonestMs = Math.min(...(this.#untilMs.get(owner)?.values() ?? []));
    return soonestMs === Infinity ? undefined : soonestMs - this.#clock.monotonicMs();
  }

  forget(owner: string): void {
    this.#untilMs.delete(owner);
  }
}

/**
 * The Machines that are on their way out and leave pods to others: what an autoscaler has chosen leaves none, nor does what never had a Node.
 */
export function leavingPods(machines: readonly Machine[]): readonly Machine[] {
  return machines.filter(
    (machine) => isTerminating(machine) && nodeNameOf(machine) !== '' && markedAtMs(machine) === undefined,
  );
}

/**
 * The Machines of a set that have come since others began to go, one for each of those that leave pods, the first that came. What an
 * autoscaler has chosen is replaced by nothing: who comes afterwards has come for other pods.
 */
export function comeInPlace(machines: readonly Machine[]): readonly Machine[] {
  const going = leavingPods(machines);
  const sinceMs = Math.min(...going.map(({ metadata }) => fromTimestamp(metadata.deletionTimestamp) ?? Infinity));
  return machines
    .map((machine) => ({ machine, createdMs: fromTimestamp(machine.metadata.creationTimestamp) ?? 0 }))
    .filter(({ machine, createdMs }) => createdMs >= sinceMs && !isTerminating(machine))
    .toSorted((a, b) => a.createdMs - b.createdMs || (a.machine.metadata.name < b.machine.metadata.name ? -1 : 1))
    .slice(0, going.length)
    .map(({ machine }) => machine);
}
