import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { isReady } from '../../machine-facts/node-health.ts';

/**
 * Which of the Nodes that are being deleted were ready when that began. Only the versions right before and right after it say so: what a list
 * shows, or what a Node is later, may have been otherwise in between, and the times in it are of clocks that may be wrong. So of a deletion that
 * the watch has not delivered to this process it does not know that, and never will.
 */
export class DeletedNodes {
  /** The deletionTimestamp of those that were, by UID: a cluster that is set back may see one deleted twice. */
  readonly #ready = new Map<string, string>();

  /** The watch has delivered that a Node of these Machines is being deleted. One that was not ready a moment ago has a Machine that is Unknown. */
  noteDeleted(old: Node, current: Node, machines: readonly Machine[]): void {
    const { uid, deletionTimestamp = '' } = current.metadata;
    const isOne = old.metadata.uid === uid && isReady(old) && isReady(current);
    if (isOne && machines.every((machine) => phaseOf(machine) !== 'Unknown')) this.#ready.set(uid, deletionTimestamp);
  }

  /** Whether the Node was ready when it was deleted, before our eyes. */
  wasReady({ metadata: { uid, deletionTimestamp } }: Node): boolean {
    return deletionTimestamp !== undefined && this.#ready.get(uid) === deletionTimestamp;
  }

  /** The Node is gone, or not being deleted. */
  forgetNode({ metadata: { uid } }: Node): void {
    this.#ready.delete(uid);
  }
}
