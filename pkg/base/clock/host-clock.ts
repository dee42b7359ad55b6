import type { Clock } from './clock.ts';

/** A moment by both clocks of this host, so that neither a suspended host nor a changed wall clock hides elapsed time. */
export interface Instant {
  readonly monotonicMs: number;
  /** The host's own wall clock, jumps included; never the anchored `Clock.now()`. */
  readonly hostWallMs: number;
}

/** A clock that also shows the host's own wall clock. Only leadership (elector, fence) may look at it. */
export interface HostClock extends Clock {
  /** Milliseconds since the epoch by the host's wall clock, which goes on while the host is suspended and may jump. */
  hostWallMs(): number;
}

export function instantOf(clock: HostClock): Instant {
  return { monotonicMs: clock.monotonicMs(), hostWallMs: clock.hostWallMs() };
}

/** Milliseconds since `instant`, by the clock that moved further: what must not be too late may be early. */
export function elapsedSince(instant: Instant, clock: HostClock): number {
  return Math.max(clock.monotonicMs() - instant.monotonicMs, clock.hostWallMs() - instant.hostWallMs);
}
