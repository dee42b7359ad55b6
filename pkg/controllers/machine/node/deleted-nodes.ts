import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp, MINUTE_MS } from '../../../base/clock/clock.ts';
import { hasRun } from '../../machine-facts/joining.ts';
import { isReady, readySince } from '../../machine-facts/node-health.ts';
import type { Collaborators } from '../collaborators.ts';

/** So long a cloud controller manager may go on to delete those Nodes that it found not ready at the beginning of a round. */
const ROUND_MS = 5 * MINUTE_MS;

/**
 * Which of the Nodes that are being deleted were ready when that began, and not only just again. Only the versions right before and right after it
 * say so: what a list shows, or what a Node is later, may have been otherwise in between, and the times in it are of clocks that may be wrong. So
 * of a deletion that the watch has not delivered to this process it does not know that, and never will.
 */
export class DeletedNodes {
  readonly #clock: Collaborators['clock'];
  /** The deletionTimestamp of those that were, by UID: a cluster that is set back may see one deleted twice. */
  readonly #ready = new Map<string, string>();
  /** The same of those that had become ready again just before. */
  readonly #early = new Map<string, string>();
  /** When others became ready again (monotonic), by UID, oldest first. */
  readonly #returned = new Map<string, number>();

  constructor({ clock }: Pick<Collaborators, 'clock'>) {
    this.#clock = clock;
  }

  /** A Node of these Machines is seen, after it was seen like `old`. One that becomes ready for the first time, to join, has not returned. */
  noteSeen(old: Node | undefined, current: Node, machines: () => readonly Machine[]): void {
    const { uid } = current.metadata;
    const before = old?.metadata.uid === uid ? old : undefined;
    if (!isReady(current) || (before !== undefined && !wasInterrupted(before, current))) return;
    const nowWallMs = this.#clock.now();
    if (!machines().some((machine) => (before === undefined ? isJustWell(machine, nowWallMs) : hasRun(machine))))
      return;
    const nowMs = this.#clock.monotonicMs();
    this.#returned.delete(uid);
    this.#returned.set(uid, nowMs);
    for (const [other, atMs] of this.#returned) {
      if (nowMs - atMs < ROUND_MS) break;
      this.#returned.delete(other);
    }
  }

  /** The watch has delivered that a Node of these Machines is being deleted. */
  noteDeleted(old: Node, current: Node, machines: readonly Machine[]): void {
    const { uid, deletionTimestamp = '' } = current.metadata;
    const isOne = old.metadata.uid === uid && isReady(old) && isReady(current);
    if (!isOne || machines.some((machine) => phaseOf(machine) === 'Unknown')) return;
    (this.isEarly(old) ? this.#early : this.#ready).set(uid, deletionTimestamp);
  }

  /** Whether the Node has become ready again only just now: its deletion may have been decided before. */
  isEarly({ metadata: { uid } }: Node): boolean {
    return this.#clock.monotonicMs() - (this.#returned.get(uid) ?? -Infinity) < ROUND_MS;
  }

  /** Whether the Node was ready when it was deleted, before our eyes, and not only just again. */
  wasReady(node: Node): boolean {
    return isOf(this.#ready, node);
  }

  /** Whether it was ready then, but only just again. */
  wasEarly(node: Node): boolean {
    return isOf(this.#early, node);
  }

  /** The Node is gone, or not being deleted. */
  forgetNode({ metadata: { uid } }: Node): void {
    this.#ready.delete(uid);
    this.#early.delete(uid);
  }
}

/** Whether a Node that is ready was not before, or not in between: that shows only in the time, if it was not seen. */
function wasInterrupted(old: Node, current: Node): boolean {
  return !isReady(old) || readySince(old) !== readySince(current);
}

function isOf(deletions: ReadonlyMap<string, string>, { metadata: { uid, deletionTimestamp } }: Node): boolean {
  return deletionTimestamp !== undefined && deletions.get(uid) === deletionTimestamp;
}

/** Whether the machine is still unhealthy, or a process before has found a moment ago that it is no longer. */
function isJustWell(machine: Machine, nowMs: number): boolean {
  if (phaseOf(machine) === 'Unknown') return true;
  const { currentStatus, lastOperation } = machine.status ?? {};
  const isWell = lastOperation?.type === 'HealthCheck' && lastOperation.state === 'Successful';
  const sinceMs = fromTimestamp(currentStatus?.lastUpdateTime) ?? -Infinity;
  return phaseOf(machine) === 'Running' && isWell && nowMs - sinceMs < ROUND_MS;
}
