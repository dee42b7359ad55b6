import { optionalMember } from '../apis/optional-member.ts';
import { toTimestamp } from '../base/clock/clock.ts';

/** The state of an object, why, what it waits for, since when (RFC 3339), and what comes next. */
export interface DescribedExplanation {
  readonly reason: string;
  readonly message: string;
  readonly waitingFor?: string;
  readonly since?: string;
  readonly nextStep: string;
}

/** An explanation that was given at `nowMs`, as it is described. */
export function explanationOf(
  explanation: {
    readonly reason: string;
    readonly message: string;
    readonly waitingFor: string | undefined;
    readonly sinceMs: number | undefined;
    readonly nextStep: string;
  },
  nowMs: number,
): DescribedExplanation {
  const { reason, message, waitingFor, sinceMs, nextStep } = explanation;
  return {
    reason,
    message,
    ...optionalMember('waitingFor', waitingFor),
    ...optionalMember('since', sinceMs === undefined ? undefined : toTimestamp(nowMs - sinceMs)),
    nextStep,
  };
}
