import type { Clock } from '../../base/clock/clock.ts';

/** A size that falls so soon after it rose, or while it already swings, may rise again. */
const SWING_MS = 5_000;

interface Size {
  replicas: number;
  raisedAtMs: number;
  settledAtMs: number;
}

/**
 * Remembers how the sizes of sets change, by UID. Who raises and lowers a size within seconds, such as two autoscalers that disagree,
 * would pay for VMs that are deleted only to be made again. So after a fall that follows a rise by less than `SWING_MS` the set
 * has as long to be raised again, and each further fall begins that time anew. It never waits when none is wanted.
 *
 * Kept in memory only: a new process sees no swing, and obeys at once.
 */
export class Swings {
  readonly #clock: Clock;
  readonly #sizes = new Map<string, Size>();

  constructor(deps: { clock: Clock }) {
    this.#clock = deps.clock;
  }

  /** The set has this size now; returns for how long its surplus may still be wanted again. */
  see(uid: string, replicas: number): number {
    const nowMs = this.#clock.monotonicMs();
    const size = this.#sizes.get(uid) ?? { replicas, raisedAtMs: -Infinity, settledAtMs: -Infinity };
    this.#sizes.set(uid, size);
    if (replicas > size.replicas) size.raisedAtMs = nowMs;
    if (replicas < size.replicas && (nowMs - size.raisedAtMs < SWING_MS || nowMs < size.settledAtMs)) {
      size.settledAtMs = nowMs + SWING_MS;
    }
    size.replicas = replicas;
    return replicas === 0 ? 0 : Math.max(0, size.settledAtMs - nowMs);
  }

  forget(uid: string): void {
    this.#sizes.delete(uid);
  }
}
