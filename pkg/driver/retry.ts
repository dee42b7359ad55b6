import { MINUTE_MS } from '../base/clock/clock.ts';
import type { DriverCode } from './error.ts';

/**
 * How a failed call is repeated. Waiting starts at `firstMs`, doubles with each failure in a row, and never exceeds `maxMs`:
 * the fixed wait of the original, and a minute for deletions, because a VM that nobody needs costs money.
 */
export interface Retry {
  readonly firstMs: number;
  readonly maxMs: number;
  /** The driver's scratch state is cleared, unless the failure carries a new one. */
  readonly clearsLastKnownState: boolean;
  /** One back-off for all machines of a MachineClass: the provider is out of something that they share. */
  readonly perClass: boolean;
}

/** The call that failed. `status` is GetMachineStatus before a creation, `status-of-deleted` the one before a drain. */
export type RetriedCall = 'create' | 'initialize' | 'status' | 'status-of-deleted' | 'delete' | 'list';

const FIRST_MS = 5_000;
const SHORT_MS = 5_000;
const MEDIUM_MS = 180_000;
const LONG_MS = 600_000;
const EXHAUSTED_FIRST_MS = 15_000;

/** Errors that heal by themselves, as the original groups them; and that the provider goes on with the VM. */
const TRANSIENT = new Set<DriverCode>(['Unknown', 'DeadlineExceeded', 'Aborted', 'Unavailable', 'Uninitialized']);

const keep = (maxMs: number): Retry => ({ firstMs: FIRST_MS, maxMs, clearsLastKnownState: false, perClass: false });
const clear = (maxMs: number): Retry => ({ ...keep(maxMs), clearsLastKnownState: true });

/** A failed deletion replaces or clears the state in the original too. */
const RETRIES: Readonly<Record<RetriedCall, { readonly transient: Retry; readonly other: Retry }>> = {
  create: { transient: keep(SHORT_MS), other: clear(MEDIUM_MS) },
  status: { transient: keep(SHORT_MS), other: clear(MEDIUM_MS) },
  initialize: { transient: keep(SHORT_MS), other: keep(SHORT_MS) },
  'status-of-deleted': { transient: keep(SHORT_MS), other: keep(MINUTE_MS) },
  delete: { transient: clear(SHORT_MS), other: clear(MINUTE_MS) },
  list: { transient: keep(LONG_MS), other: keep(LONG_MS) },
};

/** What to do after `code`. `resourceExhaustedMs` is `--resource-exhausted-retry`; 0 means its default of 10 min. */
export function retryOf(call: RetriedCall, code: DriverCode, resourceExhaustedMs = LONG_MS): Retry {
  if (code === 'ResourceExhausted' && (call === 'create' || call === 'status')) {
    const maxMs = resourceExhaustedMs === 0 ? LONG_MS : resourceExhaustedMs;
    return { firstMs: Math.min(EXHAUSTED_FIRST_MS, maxMs), maxMs, clearsLastKnownState: false, perClass: true };
  }
  return TRANSIENT.has(code) ? RETRIES[call].transient : RETRIES[call].other;
}

/**
 * Milliseconds until the next attempt. `failures` counts failures in a row, from 1; `random` is in [0, 1) and spreads the
 * wait over its upper half, so that machines that failed together do not come back together. Never sooner than the provider
 * asked for.
 */
export function retryDelayMs(retry: Retry, failures: number, random: number, retryAfterMs = 0): number {
  const doubled = retry.firstMs * 2 ** Math.min(Math.max(failures, 1) - 1, 30);
  const waitMs = Math.min(doubled, retry.maxMs);
  return Math.max(Math.round(waitMs * (0.5 + random / 2)), retryAfterMs);
}
