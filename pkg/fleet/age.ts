import { fromTimestamp } from '../base/clock/clock.ts';
import { humanDuration } from './human-duration.ts';

export function ageOf(timestamp: string | undefined, nowMs: number): string {
  const sinceMs = fromTimestamp(timestamp);
  return sinceMs === undefined ? '<unknown>' : humanDuration(Math.max(0, nowMs - sinceMs));
}
