import { MINUTE_MS } from '../../base/clock/clock.ts';

/**
 * What is known of VMs of a class that no Machine owns. `unknown`: no list could be had yet; `unsupported`: the driver
 * cannot list.
 */
export type LeftoverVMs = 'none' | 'some' | 'unknown' | 'unsupported';

export interface ClassState {
  readonly hasMachines: boolean;
  /** Whether it carries our finalizer. */
  readonly isHeld: boolean;
  readonly isDeleting: boolean;
  /** A Machine of it was let go by force, and no list has shown since that its VM is gone. */
  readonly isUnconfirmed: boolean;
  /** A Machine of it has vanished, and nobody of ours had deleted its VM. */
  readonly hasLost: boolean;
  /** A list has shown VMs of it that nobody owns. */
  readonly hasLeft: boolean;
  /** A CreateMachine call with it is under way or got no answer: its VM may still appear. */
  readonly mayComeLate: boolean;
  /** Undefined before the provider was asked. */
  readonly ownerless: LeftoverVMs | undefined;
  /** How long it has been without Machines, in its present state of deletion. */
  readonly waitedMs: number;
  /** How long lists in a row have shown no VM: from the begin of the first to the begin of the last. Undefined when the last one did not. */
  readonly emptyForMs: number | undefined;
  /** For how long such lists have not counted, because no look for VMs without a Machine has followed them. */
  readonly uncountedForMs: number;
  /** How far apart two lists must be to prove that no VM is left. */
  readonly graceMs: number;
}

/** What to do about our finalizer. `ask`: a VM list decides; `wait`: ask again later. */
export type FinalizerDecision = 'leave' | 'add' | 'ask' | 'wait' | 'remove' | 'remove-unproven';

/** A class that is deleted is not held longer than this for VMs of which nothing can be learned. */
export const LONGEST_HOLD_MS = 10 * MINUTE_MS;

/**
 * A MachineClass is held for as long as somebody needs it to reach a VM:
 *
 * | Machines | VMs without Machine | class being deleted | finalizer                                                |
 * |----------|---------------------|---------------------|----------------------------------------------------------|
 * | some     | –                   | no                  | added                                                    |
 * | some     | –                   | yes                 | left as it is                                            |
 * | none     | none, unsupported   | –                   | removed                                                  |
 * | none     | some                | –                   | kept, asked again, and told of from 10 min of deletion on |
 * | none     | unknown             | no                  | kept, asked again                                        |
 * | none     | unknown             | yes                 | kept, asked again; removed with a Warning after 10 min   |
 * | none     | none, may come late | –                   | kept, asked again                                        |
 *
 * Where a Machine was let go by force, or a list has shown VMs, it is kept until two lists in a row, some time apart, show no VM, however long
 * that takes: a list that is wrong once would have its VM forgotten, and a provider that does not answer meanwhile has not deleted it. So it is
 * where one vanished, but no longer than others while nothing can be learned, be it because no list that is empty counts. Else one list is
 * enough, because each Machine went only after its VM.
 */
export function decideFinalizer(state: ClassState): FinalizerDecision {
  const { hasMachines, isHeld, isDeleting, isUnconfirmed, mayComeLate } = state;
  const { hasLost, hasLeft, ownerless, waitedMs, emptyForMs, uncountedForMs, graceMs } = state;
  const isProved = emptyForMs !== undefined && emptyForMs >= graceMs;
  if (hasMachines) return isHeld || isDeleting ? 'leave' : 'add';
  if (!isHeld) return 'leave';
  if (ownerless === undefined) return 'ask';
  if (isUnconfirmed) return isProved ? 'remove' : 'wait';
  if (ownerless === 'unsupported') return 'remove';
  if (ownerless === 'none') {
    if (mayComeLate) return 'wait';
    if (isProved || !(hasLost || hasLeft)) return 'remove';
    // Looks are a grace apart.
    const isUncounted = uncountedForMs >= Math.max(LONGEST_HOLD_MS, 2 * graceMs);
    return isUncounted && isDeleting && !hasLeft ? 'remove-unproven' : 'wait';
  }
  return ownerless === 'unknown' && isDeleting && waitedMs >= LONGEST_HOLD_MS ? 'remove-unproven' : 'wait';
}
