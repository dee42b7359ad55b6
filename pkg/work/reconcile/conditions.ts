import { fromTimestamp, toTimestamp } from '../../base/clock/clock.ts';

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly lastTransitionTime?: string | null;
}

export function conditionOf<C extends Pick<Condition, 'type'>>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/**
 * A condition with the time of its last transition: the recorded one while the status is the same, otherwise now. A recorded time that is
 * not one counts as missing.
 */
export function dated<C extends Omit<Condition, 'lastTransitionTime'>>(
  condition: C,
  recorded: readonly Condition[] | undefined,
  nowMs: number,
): C & { readonly lastTransitionTime: string } {
  const before = conditionOf(recorded, condition.type);
  const sinceMs =
    before?.status === condition.status ? fromTimestamp(before.lastTransitionTime ?? undefined) : undefined;
  const since = sinceMs === undefined ? undefined : before?.lastTransitionTime;
  return { ...condition, lastTransitionTime: since ?? toTimestamp(nowMs) };
}

/** The conditions with this one in the place of the former of its type, or as the last. What a looser schema stored twice is there once. */
export function withCondition<C extends Pick<Condition, 'type'>>(
  conditions: readonly C[] | undefined = [],
  condition: NoInfer<C>,
): C[] {
  const place = conditions.findIndex(({ type }) => type === condition.type);
  if (place < 0) return [...conditions, condition];
  return conditions.flatMap((other, i) => (i === place ? [condition] : other.type === condition.type ? [] : [other]));
}

export function withoutCondition<C extends Pick<Condition, 'type'>>(
  conditions: readonly C[] | undefined,
  type: string,
): C[] {
  return (conditions ?? []).filter((condition) => condition.type !== type);
}
