import { humanDuration } from '../../../../pkg/fleet/human-duration.ts';

/** An age as tables show it. One of the near future is that of a client whose clock is behind. */
export function shownAge(ms: number): string {
  return Math.trunc(ms / 1_000) < -1 ? '<invalid>' : humanDuration(Math.max(0, ms));
}
