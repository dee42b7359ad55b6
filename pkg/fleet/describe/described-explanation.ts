import { optionalMember } from '../../apis/optional-member.ts';
import { toTimestamp } from '../../base/clock/clock.ts';

/** What is said of an object when somebody asks. */
export interface GivenExplanation {
  /** One word. */
  readonly reason: string;
  readonly message: string;
  /** Undefined: nothing. */
  readonly waitingFor: string | undefined;
  /** For how long, if anybody recorded it. */
  readonly sinceMs: number | undefined;
  readonly nextStep: string;
}

/** The state of an object, why, what it waits for, since when (RFC 3339), and what comes next. */
export interface DescribedExplanation {
  readonly reason: string;
  readonly message: string;
  readonly waitingFor?: string;
  readonly since?: string;
  readonly nextStep: string;
}

/** An explanation that was given at `nowMs`, as it is described. */
export function explanationOf(explanation: GivenExplanation, nowMs: number): DescribedExplanation {
  const { reason, message, waitingFor, sinceMs, nextStep } = explanation;
  return {
    reason,
    message,
    ...optionalMember('waitingFor', waitingFor),
    ...optionalMember('since', sinceMs === undefined ? undefined : toTimestamp(nowMs - sinceMs)),
    nextStep,
  };
}
