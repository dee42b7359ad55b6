/** Milliseconds of one minute; the API's timeouts are mostly minutes. */
export const MINUTE_MS = 60_000;

const RFC_3339 =
  /^(?<year>\d{4})-(?<month>0[1-9]|1[0-2])-(?<day>0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,30})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const HTTP_DATE =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}:\d{2} GMT$/;

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

/**
 * Milliseconds of an API timestamp; undefined for one that is absent, null or not RFC 3339 as Go reads it. `Date.parse` takes
 * nearly everything for a time ("garbage 1" is in 2001), so nothing else reads what comes from outside.
 */
export function fromTimestamp(timestamp: unknown): number | undefined {
  if (typeof timestamp !== 'string') return undefined;
  const { year, month, day } = RFC_3339.exec(timestamp)?.groups ?? {};
  if (year === undefined || Number(day) > daysIn(Number(year), Number(month))) return undefined;
  return Date.parse(timestamp);
}

/** Milliseconds of an HTTP date as servers must send it (IMF-fixdate, RFC 9110); undefined for anything else. */
export function fromHTTPDate(text: string | undefined): number | undefined {
  if (text === undefined || !HTTP_DATE.test(text)) return undefined;
  const epochMs = Date.parse(text);
  return Number.isNaN(epochMs) ? undefined : epochMs;
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}
