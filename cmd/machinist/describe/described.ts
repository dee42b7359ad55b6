import type { Event } from '../../../pkg/apis/wire.ts';
import { toTimestamp } from '../../../pkg/clock/clock.ts';

/** Where an object stands, why, what it waits for, since when (RFC 3339), and what comes next. */
export interface DescribedExplanation {
  readonly reason: string;
  readonly message: string;
  readonly waitingFor?: string;
  readonly since?: string;
  readonly nextStep: string;
}

/** One condition. Times are RFC 3339, absent where nobody recorded them. */
export interface DescribedCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly since?: string;
}

export interface DescribedEvent {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly from: string;
  readonly count: number;
  readonly first?: string;
  readonly last?: string;
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

export function describedCondition(condition: {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string | null;
}): DescribedCondition {
  const { type, status, reason, message, lastTransitionTime } = condition;
  return {
    type,
    status,
    ...optionalMember('reason', reason),
    ...optionalMember('message', message),
    ...optionalMember('since', lastTransitionTime),
  };
}

/** The Events about an object as they are described, the oldest first. */
export function eventsOf(events: readonly Event[]): readonly DescribedEvent[] {
  return events.map(eventOf).toSorted((a, b) => ((a.last ?? '') < (b.last ?? '') ? -1 : 1));
}

function eventOf({
  type,
  reason,
  message,
  source,
  count,
  firstTimestamp,
  lastTimestamp,
  eventTime,
}: Event): DescribedEvent {
  return {
    type: type ?? '',
    reason: reason ?? '',
    message: (message ?? '').trim(),
    from: source?.component ?? '',
    count: count ?? 1,
    ...optionalMember('first', firstTimestamp ?? eventTime),
    ...optionalMember('last', lastTimestamp ?? eventTime ?? firstTimestamp),
  };
}

/** An object with the member if it has a value, otherwise an empty object. */
export function optionalMember<K extends string>(
  member: K,
  value: string | undefined | null,
): Partial<Record<K, string>> {
  return value === undefined || value === null || value === '' ? {} : ({ [member]: value } as Record<K, string>);
}
