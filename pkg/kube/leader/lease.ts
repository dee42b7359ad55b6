import { toMicroTimestamp } from '../../base/clock/clock.ts';
import type { Lease } from '../../apis/wire.ts';
import type { New } from '../client/client.ts';

/** The times of leader election; the lease outlasts the renew deadline, which outlasts the retry period. */
export interface LeaseTiming {
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  /** How often the holder renews it; undefined: each retry period, which is also when a renewal that failed is repeated. */
  readonly renewPeriodMs?: number | undefined;
}

/**
 * The Lease as last seen, and until when its holder may still act by *our* monotonic clock: the lease duration from when
 * we first saw this renewal. The holder's own times are never compared, its clock may be wrong.
 */
export interface Observation {
  /** Undefined when there is none. */
  readonly lease: Lease | undefined;
  readonly heldUntilMs: number;
  /** Highest `leaseTransitions` ever seen, or heard of from drivers: whatever becomes of the Lease, our fencing token does not fall. */
  readonly transitions: number;
}

/** What a Lease may be raised to: half of what the API server takes is left to changes of leadership. */
export const MAX_RAISED = 2 ** 30;

/** What a candidate does next. `transitions` is the fencing token under which it would act. */
export type LeaseDecision =
  | { readonly kind: 'create'; readonly transitions: number }
  | { readonly kind: 'take'; readonly lease: Lease; readonly transitions: number }
  | { readonly kind: 'wait'; readonly forMs: number };

export const nothingSeen: Observation = Object.freeze({ lease: undefined, heldUntilMs: -Infinity, transitions: 0 });

/**
 * Takes in what was read at `nowMs` (monotonic): the same renewal seen again gives its holder no more time. A deleted Lease
 * still binds us until the renewal that we saw before has run out: its holder may not know yet.
 */
export function observe(before: Observation, lease: Lease | undefined, nowMs: number): Observation {
  if (lease === undefined) return { ...before, lease };
  const transitions = Math.max(before.transitions, transitionsOf(lease));
  if (before.lease !== undefined && isSameRenewal(before.lease, lease)) return { ...before, lease, transitions };
  if (!holderOf(lease)) return { lease, heldUntilMs: -Infinity, transitions };
  return { lease, heldUntilMs: nowMs + (lease.spec?.leaseDurationSeconds ?? 0) * 1_000, transitions };
}

/** Takes in that somebody has acted under `token`, although the Lease is ours: we act under a higher one from now on. */
export function outbid(before: Observation, token: bigint): Observation {
  return { ...before, transitions: Math.max(before.transitions, Number(token) + 1) };
}

/** What the candidate `identity` does at `nowMs` (monotonic). */
export function decideLease(
  { lease, heldUntilMs, transitions }: Observation,
  identity: string,
  nowMs: number,
): LeaseDecision {
  // Ours already: an earlier attempt succeeded, but its answer was lost.
  if (lease !== undefined && holderOf(lease) === identity) return { kind: 'take', lease, transitions };
  if (nowMs < heldUntilMs) return { kind: 'wait', forMs: heldUntilMs - nowMs };
  // client-go begins with 0. Our fencing tokens begin with 1: 0 means that there is no leader election.
  if (lease === undefined) return { kind: 'create', transitions: transitions + 1 };
  return { kind: 'take', lease, transitions: transitions + 1 };
}

/** Labels of a Lease, by which several are found. */
export type LeaseLabels = Readonly<Record<string, string>>;

export function newLease(
  { name, labels }: { readonly name: string; readonly labels?: LeaseLabels | undefined },
  identity: string,
  transitions: number,
  timing: LeaseTiming,
  nowMs: number,
): New<Lease> {
  const time = toMicroTimestamp(nowMs);
  return {
    metadata: { name, ...(labels && { labels: { ...labels } }) },
    spec: {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(timing.leaseDurationMs / 1_000), // the API takes whole seconds: rather too long
      acquireTime: time,
      renewTime: time,
      leaseTransitions: transitions,
    },
  };
}

/** `lease` taken over by `identity`; `nowMs` is wall time. */
export function takenLease(
  lease: Lease,
  identity: string,
  transitions: number,
  timing: LeaseTiming,
  nowMs: number,
): Lease {
  const { spec } = newLease({ name: lease.metadata.name }, identity, transitions, timing, nowMs);
  return { ...lease, spec: { ...lease.spec, ...spec } };
}

/** `lease` renewed by its holder, with at least so many transitions; `nowMs` is wall time. */
export function renewedLease(lease: Lease, nowMs: number, leastTransitions = 0): Lease {
  const leaseTransitions = Math.max(transitionsOf(lease), leastTransitions);
  return { ...lease, spec: { ...lease.spec, renewTime: toMicroTimestamp(nowMs), leaseTransitions } };
}

/** `lease` given up by its holder, as client-go does it: anybody may take it at once. `nowMs` is wall time. */
export function releasedLease(lease: Lease, nowMs: number): Lease {
  const time = toMicroTimestamp(nowMs);
  return {
    ...lease,
    spec: { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1, acquireTime: time, renewTime: time },
  };
}

/** How often it has changed hands: the fencing token of its holder. */
export function transitionsOf(lease: Lease): number {
  return lease.spec?.leaseTransitions ?? 0;
}

/** Who holds it; '' when nobody does. */
export function holderOf(lease: Lease): string {
  return lease.spec?.holderIdentity ?? '';
}

/** When it was last renewed, by its holder's clock: tells one renewal from another. */
export function renewTimeOf(lease: Lease): string {
  return lease.spec?.renewTime ?? '';
}

function isSameRenewal(a: Lease, b: Lease): boolean {
  return (
    a.metadata.uid === b.metadata.uid &&
    holderOf(a) === holderOf(b) &&
    a.spec?.renewTime === b.spec?.renewTime &&
    a.spec?.acquireTime === b.spec?.acquireTime &&
    a.spec?.leaseDurationSeconds === b.spec?.leaseDurationSeconds &&
    a.spec?.leaseTransitions === b.spec?.leaseTransitions
  );
}
