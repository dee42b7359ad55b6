import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { isBreaking } from '../../machine-facts/node-health.ts';
import type { Collaborators } from '../collaborators.ts';

/** When a Node came to be broken; by type of the condition, monotonic. */
interface Seen {
  readonly nodeUID: string;
  readonly sinceMs: ReadonlyMap<string, number>;
}

/**
 * When Nodes broke before our eyes. The time in a condition is of the clock of a kubelet, which may be behind: a Node that has worked a moment ago
 * is not broken for longer. Only the versions right before and right after it say so: of what a list shows nobody knows when it happened.
 */
export class BrokenNodes {
  readonly #clock: Collaborators['clock'];
  /** By UID of the Machine. */
  readonly #seen = new Map<string, Seen>();

  constructor({ clock }: Pick<Collaborators, 'clock'>) {
    this.#clock = clock;
  }

  /** The watch has delivered how a Node of these Machines is, right after it was like `old`. */
  noteDelivered(old: Node, current: Node, machines: () => readonly Machine[]): void {
    const before = old.metadata.uid === current.metadata.uid ? brokenTypes(old) : [];
    const after = brokenTypes(current);
    if (before.join() === after.join()) return;
    const nodeUID = current.metadata.uid;
    const nowMs = this.#clock.monotonicMs();
    for (const { metadata } of machines()) {
      const known = this.#seen.get(metadata.uid);
      const knownMs = known?.nodeUID === nodeUID ? known.sinceMs : new Map<string, number>();
      const sinceMs = after.flatMap((type) => {
        const typeMs = before.includes(type) ? knownMs.get(type) : nowMs;
        return typeMs === undefined ? [] : [[type, typeMs] as const];
      });
      if (sinceMs.length === 0) this.#seen.delete(metadata.uid);
      else this.#seen.set(metadata.uid, { nodeUID, sinceMs: new Map(sinceMs) });
    }
  }

  /** For how long at most a condition of the Node of a Machine has been bad; Infinity when that was not seen to begin. */
  brokenForMs({ metadata: { uid } }: Pick<Machine, 'metadata'>, node: Node, type: string): number {
    const seen = this.#seen.get(uid);
    const sinceMs = seen?.nodeUID === node.metadata.uid ? seen.sinceMs.get(type) : undefined;
    return this.#clock.monotonicMs() - (sinceMs ?? -Infinity);
  }

  forget(uid: string): void {
    this.#seen.delete(uid);
  }
}

function brokenTypes({ status }: Node): readonly string[] {
  return (status?.conditions ?? []).flatMap((condition) => (isBreaking(condition) ? [condition.type] : [])).toSorted();
}
