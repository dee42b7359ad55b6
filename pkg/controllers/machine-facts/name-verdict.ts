import { CREATION_SENT_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted, keyOf } from '../../apis/meta.ts';
import { isClearlyOlder } from './clearly-older.ts';
import { hasRecordedVM } from './node-owner.ts';
import { wasNeverRequested } from './status.ts';

/** The Machine that holds another one of its name. */
export interface NameHeld {
  readonly heldBy: Machine;
  readonly why: 'has-begun' | 'is-older' | 'is-as-old';
}

export type NameVerdict = 'free' | NameHeld;

const RANK: Readonly<Record<NameHeld['why'], number>> = { 'has-begun': 0, 'is-older': 1, 'is-as-old': 2 };

/**
 * Whether the creation of a Machine may begin, as far as its name goes: there is one Node of a name in a target cluster. `others` were read
 * after the Machine was stored, so that of two at least one sees the other.
 *
 * | other Machines of the name                         | verdict                                  |
 * |----------------------------------------------------|------------------------------------------|
 * | none                                               | free                                     |
 * | one has begun                                      | held                                     |
 * | one is older by more than a minute                 | held                                     |
 * | one is not clearly older or younger                | held, and so is that one: one has to go  |
 * | all are younger by more than a minute, none began  | free                                     |
 * | all are being deleted, and none was ever requested | free                                     |
 */
export function judgeName(machine: Machine, others: readonly Machine[]): NameVerdict {
  const held = others
    .map((heldBy) => ({ heldBy, why: whyHeld(machine, heldBy) }))
    .filter((one): one is NameHeld => one.why !== undefined)
    .toSorted((a, b) => RANK[a.why] - RANK[b.why] || (keyOf(a.heldBy) < keyOf(b.heldBy) ? -1 : 1));
  return held[0] ?? 'free';
}

/** Whether a VM may have been requested for a Machine, as far as it tells. One that tells nothing was stored a moment ago. */
export function hasBegun(machine: Machine): boolean {
  if (hasRecordedVM(machine) || machine.metadata.annotations?.[CREATION_SENT_ANNOTATION] !== undefined) return true;
  const { type, errorCode } = machine.status?.lastOperation ?? {};
  return type !== undefined && errorCode !== 'NameTaken' && !wasNeverRequested(machine);
}

function whyHeld({ metadata }: Machine, by: Machine): NameHeld['why'] | undefined {
  if (hasBegun(by)) return 'has-begun';
  if (isBeingDeleted(by) && wasNeverRequested(by)) return undefined;
  if (isClearlyOlder(metadata, by.metadata)) return undefined;
  return isClearlyOlder(by.metadata, metadata) ? 'is-older' : 'is-as-old';
}
