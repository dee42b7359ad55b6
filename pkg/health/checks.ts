import { toTimestamp } from '../base/clock/clock.ts';
import type { Cluster } from '../kube/gate/gate.ts';
import type { ClusterState } from '../kube/gate/outage-detector.ts';
import { describeLength, describeOutage } from '../kube/gate/outage.ts';
import type { CredentialState } from '../kube/client/endpoint.ts';

/** How a check stands. `detail` is shown by /readyz?verbose; it carries no secrets. */
export interface CheckResult {
  readonly ok: boolean;
  /** It passes, because a restart would not help, but needs attention. */
  readonly isDegraded?: boolean;
  readonly detail?: string;
}

const PASSED = { ok: true } as const;
const FAILED = { ok: false } as const;
/** For what a restart would not help with. */
export const DEGRADED = { ok: true, isDegraded: true } as const;

/** A named condition of readiness. `check` answers at once from what is known. */
export interface Check {
  readonly name: string;
  check(): CheckResult;
}

export interface Readiness {
  readonly ok: boolean;
  readonly checks: readonly (CheckResult & { readonly name: string })[];
}

/** The checks of a process; parts add theirs while they are built. */
export class Checks {
  readonly #checks: Check[] = [];

  /** Adds checks. Throws when a name is taken. */
  add(...checks: readonly Check[]): void {
    for (const check of checks) {
      if (this.#checks.some(({ name }) => name === check.name))
        throw new Error(`a check named ${check.name} already exists`);
      this.#checks.push(check);
    }
  }

  /** Runs all checks; one that throws has failed. */
  run(): Readiness {
    const checks = this.#checks.map((named) => {
      const { name } = named;
      try {
        return { name, ...named.check() };
      } catch (err) {
        return { name, ok: false, detail: err instanceof Error ? err.message : String(err) };
      }
    });
    return { ok: checks.every(({ ok }) => ok), checks };
  }
}

export interface SyncState {
  readonly kind: string;
  readonly hasSynced: boolean;
  /** The process goes on without it. */
  readonly isOptional?: boolean;
}

/** Whether all caches have been filled once; names those that have not, also those that the process can do without. */
export function cachesSynced(caches: () => Iterable<SyncState>): Check {
  return {
    name: 'caches',
    check() {
      const missing = [...caches()].filter(({ hasSynced }) => !hasSynced);
      const kinds = (isWanted: boolean): string =>
        missing.flatMap(({ kind, isOptional = false }) => (isOptional === isWanted ? [kind] : [])).join(', ');
      const needed = kinds(false);
      if (needed !== '') return { ...FAILED, detail: `not synced: ${needed}` };
      return missing.length === 0 ? PASSED : { ...DEGRADED, detail: `without ${kinds(true)} (not permitted to read)` };
    },
  };
}

export interface Candidacy {
  readonly isLeading: boolean;
  readonly holder: string | undefined;
  /** Why it will never lead again. */
  readonly ended: string | undefined;
  /** It led, and does again if nobody else has by the time the Lease can be reached. */
  readonly isSuspended: boolean;
  /** Since when by wall time, and why, the Lease can neither be read nor taken. */
  readonly trouble: { readonly sinceMs: number; readonly why: string } | undefined;
}

/** Who holds a Lease. A process that stands by is ready too: it says so. One that has given its Lease up is about to end. */
export function leadership(lease: string, candidacy: Candidacy): Check {
  return {
    name: `lease ${lease}`,
    check() {
      const { isLeading, isSuspended, holder, ended, trouble } = candidacy;
      if (ended !== undefined) return { ...FAILED, detail: `stopping: ${ended}` };
      if (isLeading) return { ...PASSED, detail: 'leading' };
      const held = holder === undefined || isSuspended ? '' : `, held by ${holder}`;
      const unreached =
        trouble === undefined
          ? ''
          : `; could not read or acquire the Lease since ${toTimestamp(trouble.sinceMs)} (${trouble.why})`;
      return {
        ...(isSuspended || trouble !== undefined ? DEGRADED : PASSED),
        detail: `${isSuspended ? 'leadership suspended' : 'standing by'}${held}${unreached}`,
      };
    },
  };
}

/** The credentials for one cluster; those that never change have no state. */
export interface ClusterCredentials {
  readonly cluster: Cluster;
  readonly state: CredentialState | undefined;
}

/**
 * Whether there are credentials for each cluster that it has not refused. Without any for longer than the renew deadline nothing can be sent,
 * and whoever else has some should lead. A load that fails while there are some is only shown.
 */
export function credentialsValid(
  clusters: () => readonly ClusterCredentials[],
  monotonicMs: () => number,
  renewDeadlineMs: number,
): Check {
  return {
    name: 'credentials',
    check() {
      const nowMs = monotonicMs();
      const states = clusters();
      const isMissing = ({ state }: ClusterCredentials): boolean =>
        state?.missingSinceMs !== undefined && nowMs - state.missingSinceMs > renewDeadlineMs;
      const detail = states.map((one) => describeCredentials(one, nowMs)).join('; ');
      if (states.some(isMissing)) return { ...FAILED, detail };
      const isInTrouble = states.some(
        ({ state }) => state?.missingSinceMs !== undefined || state?.trouble !== undefined,
      );
      return { ...(isInTrouble ? DEGRADED : PASSED), detail };
    },
  };
}

function describeCredentials({ cluster, state }: ClusterCredentials, nowMs: number): string {
  const { loadedMs, missingSinceMs, trouble } = state ?? {};
  const why = trouble === undefined ? '' : ` (${trouble})`;
  if (missingSinceMs !== undefined) return `${cluster}: not loaded for ${describeLength(nowMs - missingSinceMs)}${why}`;
  if (loadedMs === undefined || trouble === undefined) return `${cluster}: valid`;
  return `${cluster}: loaded ${describeLength(nowMs - loadedMs)} ago, cannot be reloaded${why}`;
}

/**
 * Whether every cluster answers. An outage does not make the process unready (only caches that were never filled do): a
 * restart would not bring the API server back, and readiness gates nothing here; the detail says since when and why.
 */
export function clustersReachable(states: () => readonly ClusterState[], monotonicMs: () => number): Check {
  return {
    name: 'clusters',
    check() {
      const nowMs = monotonicMs();
      const all = states();
      return {
        ...(all.some(({ silentSinceMs }) => silentSinceMs !== undefined) ? DEGRADED : PASSED),
        detail: all.map((state) => describe(state, nowMs)).join('; '),
      };
    },
  };
}

function describe({ cluster, outage, silentSinceMs, provenMs, lastError }: ClusterState, nowMs: number): string {
  if (silentSinceMs === undefined) return `${cluster}: ${provenMs === undefined ? 'not reached yet' : 'reachable'}`;
  const length = describeLength(nowMs - silentSinceMs);
  if (outage?.isSetBack) {
    const failure = lastError === undefined ? '' : `, last attempt failed: ${lastError}`;
    return `${cluster}: outage, ${describeOutage(outage)}, reading the cluster for ${length}${failure}`;
  }
  const answer = lastError ?? 'no answer';
  if (outage === undefined) return `${cluster}: failing for ${length} (${answer})`;
  return `${cluster}: outage, ${describeOutage(outage)}, for ${length}, last probe: ${answer}`;
}
