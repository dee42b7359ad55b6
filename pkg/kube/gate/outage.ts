import { toTimestamp } from '../../base/clock/clock.ts';
import type { Cluster } from './gate.ts';

/** A cluster that cannot be reached, or was set back, so that nothing which concerns it is changed. */
export interface Outage {
  readonly cluster: Cluster;
  /**
   * Wall time of the last sign of life before it; without any, of when the first probe was sent. The outage began between it and the next
   * probe, so it is never told too short.
   */
  readonly sinceMs: number;
  /** What the probe that found it ended with; stays the same until the end of the outage. */
  readonly why: string;
  /** It answers, but no longer knows what it has shown before: its etcd was restored from a backup. */
  readonly isSetBack?: true;
  /** There were no credentials that it had not refused, so that nothing could be asked. */
  readonly isWithoutCredentials?: true;
  /** It was set back while an API server ran, whose watch cache goes on as if it had not been: nothing can be read anew from it. */
  readonly isServerAhead?: true;
}

/** What an outage can be because of, for metrics. */
export const OUTAGE_REASONS = ['unreachable', 'no-credentials', 'set-back', 'server-ahead'] as const;

export function outageReasonOf(outage: Outage): (typeof OUTAGE_REASONS)[number] {
  const { isSetBack, isServerAhead, isWithoutCredentials } = outage;
  if (isServerAhead) return 'server-ahead';
  if (isWithoutCredentials) return 'no-credentials';
  return isSetBack ? 'set-back' : 'unreachable';
}

/** A cluster no longer knows what it has shown before. What caches hold is then partly of a history that never happened. */
export class SetBackError extends Error {
  override readonly name = 'SetBackError';
}

/** Lists of a cluster show what its etcd does not hold: an API server ran while etcd was set back. */
export class ServerAheadError extends Error {
  override readonly name = 'ServerAheadError';
}

/** The server answered a probe, but refuses us what it asks for: it does not know us, does not let us, or does not serve it. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
}

/** An outage began, what helps against it became known, or it is over. */
export interface OutageChange extends Outage {
  readonly isOver: boolean;
  /** How long the outage has lasted by now. */
  readonly lastedMs: number;
}

/** `API server of cluster "target" unreachable since 2026-01-01T00:00:00Z (connect ECONNREFUSED)`; no time passes in it. */
export function describeOutage(outage: Outage): string {
  const { cluster, sinceMs, why, isSetBack, isServerAhead, isWithoutCredentials } = outage;
  const remedy = isServerAhead ? '; restart its API servers, because their watch caches are ahead of etcd' : '';
  if (isSetBack)
    return `Cluster "${cluster}" was restored to an earlier state, detected at ${toTimestamp(sinceMs)} (${why})${remedy}`;
  if (isWithoutCredentials)
    return `No valid credentials for cluster "${cluster}" since ${toTimestamp(sinceMs)} (${why})`;
  return `API server of cluster "${cluster}" unreachable since ${toTimestamp(sinceMs)} (${why})`;
}

const HELD_UP = 'no object or VM of this cluster is created, changed or deleted until it responds again.';
const HELD_UP_SET_BACK =
  'no object or VM of this cluster is created, changed or deleted until the cluster has been read completely.';

/** Text for work that waits for these outages to end: describeOutage of each, and their effect. */
export function describeBlockingOutages(outages: readonly Outage[]): string {
  const isAnswering = outages.every(({ isSetBack }) => isSetBack);
  return `${outages.map(describeOutage).join('; ')}: ${isAnswering ? HELD_UP_SET_BACK : HELD_UP}`;
}

/** `45 s`, `12 min 5 s`, `3 h 2 min`. */
export function describeLength(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
