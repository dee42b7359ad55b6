import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { atOnce } from '../replicas/at-once.ts';

/** A pass deletes at most so many Machines, all at once; then the plan is made anew, because replicas may have risen. */
export const DELETIONS_A_PASS = 50;

/**
 * Whose turn it is to be deleted when a set has more Machines to delete than a pass deletes. Those that could not be deleted, or were
 * spared, come last, in the order in which they were tried: otherwise so many of them would keep all others.
 *
 * Kept in memory only: a new process tries all once more.
 */
export class DeletionTurns {
  /** When Machines were tried in vain, by the UIDs of their sets. */
  readonly #ofSets = new Map<string, Map<string, number>>();
  #turn = 0;

  /** Calls `remove`, which says whether it was deleted, for those of `all` whose turn it is. Afterwards the first error is thrown. */
  async each<T extends { readonly machine: Machine }>(
    { metadata: { uid } }: MachineSet,
    all: readonly T[],
    remove: (one: T) => Promise<boolean>,
  ): Promise<void> {
    const before = this.#ofSets.get(uid) ?? new Map<string, number>();
    const inVain = new Map(
      all.flatMap(({ machine: { metadata } }) => {
        const turn = before.get(metadata.uid);
        return turn === undefined ? [] : [[metadata.uid, turn] as const];
      }),
    );
    this.#ofSets.set(uid, inVain);
    const turnOf = ({ machine }: T): number => inVain.get(machine.metadata.uid) ?? 0;
    const turns = all.toSorted((a, b) => turnOf(a) - turnOf(b)).slice(0, DELETIONS_A_PASS);
    await atOnce(DELETIONS_A_PASS, turns, async (one) => {
      let isDeleted = false;
      try {
        isDeleted = await remove(one);
      } finally {
        if (!isDeleted) inVain.set(one.machine.metadata.uid, ++this.#turn);
      }
    });
  }

  forget(uid: string): void {
    this.#ofSets.delete(uid);
  }
}
