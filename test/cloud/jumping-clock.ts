import { SystemClock } from '../../pkg/base/clock/system-clock.ts';

/** A clock whose host is set to another time, and that can say that more time has passed; timers run as they do. */
export class JumpingClock extends SystemClock {
  /** By how much the host's wall clock is wrong. */
  offsetMs = 0;
  /** So much more time has passed. */
  aheadMs = 0;

  override monotonicMs(): number {
    return super.monotonicMs() + this.aheadMs;
  }

  override hostWallMs(): number {
    return super.hostWallMs() + this.offsetMs;
  }
}
