import type { RuntimeMachine } from '../../runtime/runtime.ts';
import type { Release } from '../../../../controllers/vms/orphan-release.ts';
import { UID_LABEL } from './keys.ts';

/** For so long a machine without a Machine is left alone: two looks, and a watch that may be late. */
export const OWNERLESS_MS = 10_000;
/** More at once are no mishap: somebody has lost Machines, and may want them back. */
const MOST_OWNERLESS = 5;

/** A machine at a runtime whose Machine is not there. */
export interface Ownerless {
  readonly machine: RuntimeMachine;
  readonly forMs: number;
}

/** Why machines are kept: nobody has seen that their Machines were to be deleted, or so many were at once that it may be a mistake. */
export type KeptWhy = 'DeletionNotSeen' | 'TooManyAtOnce';

export interface OwnerlessVerdict {
  /** May be deleted, when the API server itself confirms that their Machines are gone. */
  readonly remove: readonly RuntimeMachine[];
  readonly kept: readonly RuntimeMachine[];
  /** Undefined: none is kept. */
  readonly why: KeptWhy | undefined;
}

/**
 * Judges machines whose Machine is not there. Absence is what a restored etcd shows of every Machine that is younger than the backup, so
 * that a machine goes only if its Machine was seen to be deleted, or if somebody has allowed it.
 *
 * | its Machine                | few of these   | many           | with a permission |
 * |----------------------------|----------------|----------------|-------------------|
 * | was seen to be deleted     | goes           | kept           | goes              |
 * | was not                    | kept           | kept           | goes              |
 */
export function judgeOwnerless(
  ownerless: readonly Ownerless[],
  { wasDeleted, release }: { readonly wasDeleted: (uid: string) => boolean; readonly release: Release },
): OwnerlessVerdict {
  const due = ownerless.filter(({ forMs }) => forMs >= OWNERLESS_MS).map(({ machine }) => machine);
  if (release === 'given') return { remove: due, kept: [], why: undefined };
  const isDeparted = ({ metadata }: RuntimeMachine): boolean => wasDeleted(metadata.labels[UID_LABEL] ?? '');
  const unseen = due.filter((machine) => !isDeparted(machine));
  const departed = due.filter(isDeparted);
  const isTooMany = ownerless.filter(({ machine }) => isDeparted(machine)).length > MOST_OWNERLESS;
  if (isTooMany) return { remove: [], kept: due, why: 'TooManyAtOnce' };
  return { remove: departed, kept: unseen, why: unseen.length > 0 ? 'DeletionNotSeen' : undefined };
}
