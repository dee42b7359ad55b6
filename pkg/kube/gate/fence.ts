import { elapsedSince, type HostClock, type Instant } from '../../base/clock/host-clock.ts';

/** Whether we may still act for our Lease. */
export interface Fence {
  /** Milliseconds until it closes; 0 when closed, Infinity without leader election. */
  readonly remainingMs: number;
  /** `leaseTransitions` of the Lease under which we act; at least 1. 0n without leader election: nothing to compare. */
  readonly token: bigint;
  /** Monotonic time since which it has been open without a break; undefined when closed. */
  readonly openSinceMs: number | undefined;
}

/** What a fence rests on: the last successful renewal. */
interface Renewal {
  readonly isOpen: boolean;
  readonly sentAt: Instant;
  readonly openSinceMs: number;
  readonly token: bigint;
}

/** Members of a slot; moments are whole microseconds. */
const [IS_OPEN, SENT_MONOTONIC, SENT_WALL, OPEN_SINCE, TOKEN, SLOT_LENGTH] = [0, 1, 2, 3, 4, 5];
/** Cell 0 counts what was written; the n-th stands in the first slot if n is even, in the second if it is odd. */
const FIRST_SLOT = 1;
const US_PER_MS = 1_000;

const MEMORY_BYTES = (FIRST_SLOT + 2 * SLOT_LENGTH) * BigInt64Array.BYTES_PER_ELEMENT;

/**
 * The fence of one leadership. Open from the first renewal until the moment at which the last successful renewal was
 * *sent* + the renew deadline, by the monotonic or the host's wall clock, whichever moved further: it closes before
 * anybody else can take the Lease, also when this process or its host was paused. Closed before the first renewal.
 *
 * Two fences over one memory are one: a thread that renews tells one that does not, without any turn of its event loop.
 * Only one thread may call `renewed` and `close`.
 */
export class LeaseFence implements Fence {
  readonly #clock: HostClock;
  readonly #renewDeadlineMs: number;
  /** For a fence in another thread that is to be this one. */
  readonly memory: SharedArrayBuffer;
  readonly #cells: BigInt64Array;

  constructor(parts: { clock: HostClock; renewDeadlineMs: number; memory?: SharedArrayBuffer }) {
    this.#clock = parts.clock;
    this.#renewDeadlineMs = parts.renewDeadlineMs;
    this.memory = parts.memory ?? new SharedArrayBuffer(MEMORY_BYTES);
    this.#cells = new BigInt64Array(this.memory);
  }

  get remainingMs(): number {
    return this.#remainingMs(this.#read());
  }

  get token(): bigint {
    return this.#read().token;
  }

  get openSinceMs(): number | undefined {
    const renewal = this.#read();
    return this.#remainingMs(renewal) > 0 ? renewal.openSinceMs : undefined;
  }

  /** Takes note of a successful acquisition or renewal that was sent at `sentAt`. */
  renewed(sentAt: Instant, leaseTransitions: number): void {
    const before = this.#read();
    const openSinceMs = this.#remainingMs(before) === 0 ? this.#clock.monotonicMs() : before.openSinceMs;
    this.#write({ isOpen: true, sentAt, openSinceMs, token: BigInt(leaseTransitions) });
  }

  /** Closes at once: the Lease is lost or about to be released. */
  close(): void {
    this.#write({ ...this.#read(), isOpen: false });
  }

  #remainingMs({ isOpen, sentAt }: Renewal): number {
    return isOpen ? Math.max(0, this.#renewDeadlineMs - elapsedSince(sentAt, this.#clock)) : 0;
  }

  /** Never waits for the writer, which may be stopped half-way: what was written last is whole until two more have been. */
  #read(): Renewal {
    for (;;) {
      const written = Atomics.load(this.#cells, 0);
      const at = slotOf(written);
      const cell = (member: number): bigint => Atomics.load(this.#cells, at + member);
      const renewal = {
        isOpen: cell(IS_OPEN) === 1n,
        sentAt: { monotonicMs: toMs(cell(SENT_MONOTONIC)), hostWallMs: toMs(cell(SENT_WALL)) },
        openSinceMs: toMs(cell(OPEN_SINCE)),
        token: cell(TOKEN),
      };
      if (Atomics.load(this.#cells, 0) === written) return renewal;
    }
  }

  #write({ isOpen, sentAt, openSinceMs, token }: Renewal): void {
    const written = Atomics.load(this.#cells, 0) + 1n;
    const at = slotOf(written);
    const put = (member: number, value: bigint): void => void Atomics.store(this.#cells, at + member, value);
    put(IS_OPEN, isOpen ? 1n : 0n);
    put(SENT_MONOTONIC, toUs(sentAt.monotonicMs));
    put(SENT_WALL, toUs(sentAt.hostWallMs));
    put(OPEN_SINCE, toUs(openSinceMs));
    put(TOKEN, token);
    Atomics.store(this.#cells, 0, written);
  }
}

function slotOf(written: bigint): number {
  return FIRST_SLOT + Number(written & 1n) * SLOT_LENGTH;
}

/** Rounded down: what must not be too late may be early. */
function toUs(ms: number): bigint {
  return BigInt(Math.floor(ms * US_PER_MS));
}

function toMs(us: bigint): number {
  return Number(us) / US_PER_MS;
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
