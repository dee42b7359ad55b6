import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { atOnce } from '../replicas/at-once.ts';

/** A pass deletes at most so many Machines, all at once; then the plan is made anew, because replicas may have risen. */
export const DELETIONS_A_PASS = 50;

/**
 * Whose turn it is to be deleted when a set has more Machines to delete than a pass deletes. Those that could not be deleted come last, in the
 * order in which they were tried: otherwise so many that may not be deleted would keep all others.
 *
 * Kept in memory only: a new process tries all once more.
 */
export class DeletionTurns {
  /** When the deletion of Machines has failed, by the UIDs of their sets. */
  readonly #ofSets = new Map<string, Map<string, number>>();
  #turn = 0;

  /** Calls `remove` for those of `all` whose turn it is. Afterwards the first error is thrown. */
  async each<T extends { readonly machine: Machine }>(
    { metadata: { uid } }: MachineSet,
    all: readonly T[],
    remove: (one: T) => Promise<void>,
  ): Promise<void> {
    const before = this.#ofSets.get(uid) ?? new Map<string, number>();
    const failed = new Map(
      all.flatMap(({ machine: { metadata } }) => {
        const turn = before.get(metadata.uid);
        return turn === undefined ? [] : [[metadata.uid, turn] as const];
      }),
    );
    this.#ofSets.set(uid, failed);
    const turnOf = ({ machine }: T): number => failed.get(machine.metadata.uid) ?? 0;
    const turns = all.toSorted((a, b) => turnOf(a) - turnOf(b)).slice(0, DELETIONS_A_PASS);
    await atOnce(DELETIONS_A_PASS, turns, async (one) => {
      try {
        await remove(one);
      } catch (error) {
        failed.set(one.machine.metadata.uid, ++this.#turn);
        throw error;
      }
    });
  }

  forget(uid: string): void {
    this.#ofSets.delete(uid);
  }
}
