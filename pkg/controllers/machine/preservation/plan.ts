import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import type { RequestedPreservation } from '../../machine-facts/preserve-value.ts';

/** What a decision about preservation depends on. Times in ms since the epoch. */
export interface PreservationFacts {
  readonly requested: RequestedPreservation;
  readonly phase: MachinePhase | '';
  /** When the preservation ends; undefined while there is none. */
  readonly expiryMs: number | undefined;
  /** Whether the Node shows one. Without an expiry time that was lost, as in a restore of the control cluster. */
  readonly isShown: boolean;
  readonly nowMs: number;
}

export type EndReason = 'expired' | 'withdrawn' | 'recovered';

export type PreservationPlan =
  | { readonly kind: 'leave' }
  | { readonly kind: 'preserve'; readonly isAutomatic: boolean }
  | {
      readonly kind: 'end';
      readonly why: EndReason;
      /** Whether the annotations go too, so that it does not begin again. */
      readonly forgetsRequest: boolean;
    };

const LEAVE: PreservationPlan = { kind: 'leave' };

/**
 * Decides about the preservation of a machine; a time that is over ends it whatever is asked.
 *
 * | asked            | Failed   | any other phase                     | time is over                   |
 * |------------------|----------|-------------------------------------|--------------------------------|
 * | nothing, `false` | ends     | ends                                | ends                           |
 * | `now`            | preserve | preserve                            | ends, the request is forgotten |
 * | `when-failed`    | preserve | ends; at the next failure it begins | ends, the request is forgotten |
 * | `auto-preserved` | preserve | ends, the request is forgotten      | ends, the request is forgotten |
 * | not understood   | as it is | as it is                            | ends, the request is forgotten |
 *
 * One that ends, and of which the Node alone knows, is left to the deletion when the machine is Failed.
 */
export function planPreservation({ requested, phase, expiryMs, isShown, nowMs }: PreservationFacts): PreservationPlan {
  if (phase === 'Terminating') return LEAVE;
  const isPreserved = expiryMs !== undefined;
  if (isPreserved && expiryMs <= nowMs) {
    return { kind: 'end', why: 'expired', forgetsRequest: requested !== '' && requested !== 'false' };
  }
  const isThere = isPreserved || (isShown && phase !== 'Failed');
  switch (requested) {
    case 'illegal':
      return LEAVE;
    case '':
    case 'false':
      return isThere ? { kind: 'end', why: 'withdrawn', forgetsRequest: false } : LEAVE;
    case 'now':
      return { kind: 'preserve', isAutomatic: false };
    case 'when-failed':
      if (phase === 'Failed') return { kind: 'preserve', isAutomatic: false };
      return isThere ? { kind: 'end', why: 'recovered', forgetsRequest: false } : LEAVE;
    case 'auto-preserved':
      if (phase === 'Failed') return { kind: 'preserve', isAutomatic: true };
      // Also when it recovered before the preservation had begun: the annotation takes room in its set.
      return { kind: 'end', why: 'recovered', forgetsRequest: true };
  }
}
