import type { ConditionStatus } from '../../../apis/machine/v1alpha1/phases.ts';
import { membersOf, nonEmptyText } from '../../../apis/members.ts';

/** A condition, as far as the contracts go; `reason` and `message` may be missing in those of the older one. */
export interface ClusterAPICondition {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime?: string;
  readonly observedGeneration?: number;
}

/** Of a condition of the older contract that gives none. */
export const NO_REASON = 'NoReasonReported';
/** What the API server takes for one: a word. */
const REASON = /^[A-Za-z](?:[\w,:]*\w)?$/;
const LONGEST_REASON = 256;
/** Of one that is none. */
const INVALID = 'InvalidConditionReported';

/**
 * The condition of that type in the status of an object of a provider, which may have written anything; undefined: it reports none. One
 * that makes no sense is Unknown, with what is wrong with it.
 */
export function reportedCondition(conditions: unknown, type: string): ClusterAPICondition | undefined {
  if (!Array.isArray(conditions)) return undefined;
  const found = (conditions as readonly unknown[]).find((one) => membersOf(one)['type'] === type);
  if (found === undefined) return undefined;
  const { status, reason, message } = membersOf(found);
  if (!isStatus(status)) {
    const what = `condition ${type} has status ${JSON.stringify(status)}; must be True, False or Unknown`;
    return { type, status: 'Unknown', reason: INVALID, message: what };
  }
  const why = nonEmptyText(reason) ?? NO_REASON;
  const told = nonEmptyText(message) ?? '';
  // The API server would refuse the whole status.
  if (!REASON.test(why) || why.length > LONGEST_REASON) {
    return {
      type,
      status,
      reason: INVALID,
      message: `${told} (reason ${JSON.stringify(why.slice(0, LONGEST_REASON))})`,
    };
  }
  return { type, status, reason: why, message: told };
}

function isStatus(value: unknown): value is ConditionStatus {
  return value === 'True' || value === 'False' || value === 'Unknown';
}
