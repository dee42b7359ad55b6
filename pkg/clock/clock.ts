/** Milliseconds of one minute; the API's timeouts are mostly minutes. */
export const MINUTE_MS = 60_000;

/**
 * The only source of time. Wall time for what is persisted, monotonic time for deadlines inside the process: a wall clock
 * may jump both ways, and a machine must never be declared dead because of it.
 */
export interface Clock {
  /** Wall time in milliseconds since the epoch: anchored at start and moved by the monotonic clock. */
  now(): number;
  /** Milliseconds since an arbitrary start; never goes back, does not follow changes of the wall clock. */
  monotonicMs(): number;
  /** Calls `run` once after `delayMs`; the returned function cancels it. Timers never keep the process alive. */
  schedule(delayMs: number, run: () => void): () => void;
  /** Resolves after `delayMs`; rejects with the signal's reason when it is aborted first. */
  sleep(delayMs: number, signal: AbortSignal): Promise<void>;
}

/** RFC 3339 with whole seconds, as metav1.Time is written on the wire. */
export function toTimestamp(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19)}Z`;
}

/** RFC 3339 with microseconds, as metav1.MicroTime (Leases) is written on the wire. */
export function toMicroTimestamp(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 23)}000Z`;
}

/** Milliseconds of an API timestamp; undefined for an absent, null or unparsable one. */
export function fromTimestamp(timestamp: string | null | undefined): number | undefined {
  if (timestamp === undefined || timestamp === null || timestamp === '') return undefined;
  const epochMs = Date.parse(timestamp);
  return Number.isNaN(epochMs) ? undefined : epochMs;
}
