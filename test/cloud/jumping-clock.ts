import { SystemClock } from '../../pkg/clock/system-clock.ts';

/** A clock whose host is set to another time. */
export class JumpingClock extends SystemClock {
  /** By how much the host's wall clock is wrong. */
  offsetMs = 0;

  override hostWallMs(): number {
    return super.hostWallMs() + this.offsetMs;
  }
}
