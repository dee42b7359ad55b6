import { elapsedSince, type HostClock, type Instant } from '../clock/host-clock.ts';

/** Whether we may still act for our Lease. */
export interface Fence {
  /** Milliseconds until it closes; 0 when closed, Infinity without leader election. */
  readonly remainingMs: number;
  /** `leaseTransitions` of the Lease under which we act; at least 1. 0n without leader election: nothing to compare. */
  readonly token: bigint;
  /** Monotonic time since which it has been open without a break; undefined when closed. */
  readonly openSinceMs: number | undefined;
}

/**
 * The fence of one leadership. Open from the first renewal until the moment at which the last successful renewal was
 * *sent* + the renew deadline, by the monotonic or the host's wall clock, whichever moved further: it closes before
 * anybody else can take the Lease, also when this process or its host was paused. Closed before the first renewal.
 */
export class LeaseFence implements Fence {
  readonly #clock: HostClock;
  readonly #renewDeadlineMs: number;
  #sentAt: Instant | undefined;
  #openSinceMs: number | undefined;
  #token = 0n;

  constructor(parts: { clock: HostClock; renewDeadlineMs: number }) {
    this.#clock = parts.clock;
    this.#renewDeadlineMs = parts.renewDeadlineMs;
  }

  get remainingMs(): number {
    if (this.#sentAt === undefined) return 0;
    return Math.max(0, this.#renewDeadlineMs - elapsedSince(this.#sentAt, this.#clock));
  }

  get token(): bigint {
    return this.#token;
  }

  get openSinceMs(): number | undefined {
    return this.remainingMs > 0 ? this.#openSinceMs : undefined;
  }

  /** Takes note of a successful acquisition or renewal that was sent at `sentAt`. */
  renewed(sentAt: Instant, leaseTransitions: number): void {
    if (this.remainingMs === 0) this.#openSinceMs = this.#clock.monotonicMs();
    this.#sentAt = sentAt;
    this.#token = BigInt(leaseTransitions);
  }

  /** Closes at once: the Lease is lost or about to be released. */
  close(): void {
    this.#sentAt = undefined;
  }
}

/** The fence of `--leader-elect=false`: always open. */
export class OpenFence implements Fence {
  readonly remainingMs = Infinity;
  readonly token = 0n;
  readonly openSinceMs: number;

  constructor(parts: { clock: HostClock }) {
    this.openSinceMs = parts.clock.monotonicMs();
  }
}
