import type { ObjectMeta } from '../../apis/meta.ts';
import { fromTimestamp, MINUTE_MS } from '../../base/clock/clock.ts';

/** Timestamps are of clocks of several API servers: of two that are closer, nobody can say which is older. */
const CLEARLY_MS = MINUTE_MS;

type Created = Pick<ObjectMeta, 'creationTimestamp'>;

/** Whether `a` was certainly created before `b`. */
export function isClearlyOlder(a: Created, b: Created): boolean {
  return createdAt(b) - createdAt(a) > CLEARLY_MS;
}

function createdAt({ creationTimestamp }: Created): number {
  return fromTimestamp(creationTimestamp) ?? 0;
}
