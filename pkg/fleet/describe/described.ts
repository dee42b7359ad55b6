import type { Event } from '../../apis/wire.ts';
import { optionalMember } from '../../apis/optional-member.ts';

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
