import type { Lease } from '../../../apis/wire.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';

/** Four renewals. */
export const LEASE_SECONDS = 40;
/** Clocks differ by less. */
const CLOCK_SLACK_MS = 60_000;

/** Whose the Lease of a pool is that is not ours: who holds it, when it says that it was renewed, and since when that has been the same (monotonic). */
export interface ForeignTenure {
  readonly holder: string;
  readonly renewTime: string;
  readonly sinceMs: number;
}

export type PoolTenure = { readonly kind: 'ours' } | { readonly kind: 'other'; readonly seen: ForeignTenure };

export interface TenureView {
  readonly lease: Lease | undefined;
  /** What the holders of all processes begin with that lead under the same Lease of ours: the one before this has ended. */
  readonly family: string;
  readonly before: ForeignTenure | undefined;
  /** Whether this process has held it: whoever has taken it since is there, whatever their clock says. */
  readonly wasOurs: boolean;
  readonly nowMs: { readonly monotonic: number; readonly wall: number };
}

/**
 * Whose a pool is. IronCore's machinepoollet renews the Lease of its pool and heeds nobody, so that whoever else finds it renewed lets it be:
 * two that made the same machines real would undo each other's work. One that has not been renewed for its time is free; so is one that is
 * older than that by any clock, at first sight.
 */
export function tenureOf({ lease, family, before, wasOurs, nowMs }: TenureView): PoolTenure {
  const { holderIdentity: holder = '', renewTime = '' } = lease?.spec ?? {};
  if (holder === '' || renewTime === '' || holder.startsWith(family)) return { kind: 'ours' };
  const isSame = before?.holder === holder && before.renewTime === renewTime;
  const seen = { holder, renewTime, sinceMs: isSame ? before.sinceMs : nowMs.monotonic };
  const durationMs = LEASE_SECONDS * 1_000;
  const isSilent = nowMs.monotonic - seen.sinceMs >= durationMs;
  const isLongOver = (fromTimestamp(renewTime) ?? Infinity) + durationMs + CLOCK_SLACK_MS < nowMs.wall;
  return isSilent || (isLongOver && !wasOurs) ? { kind: 'ours' } : { kind: 'other', seen };
}
