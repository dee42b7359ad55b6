import type { ClusterState } from '../gate/cluster-freeze.ts';
import { describeLength, describeOutage } from '../gate/outage.ts';

/** How a check stands. `detail` is shown by /readyz?verbose; it carries no secrets. */
export interface CheckResult {
  readonly ok: boolean;
  readonly detail?: string;
}

/** A named condition of readiness. `check` answers at once from what is known. */
export interface Check {
  readonly name: string;
  check(): CheckResult;
}

/** What /readyz says. */
export interface Readiness {
  readonly ok: boolean;
  readonly checks: readonly (CheckResult & { readonly name: string })[];
}

/** The checks of a process; parts add theirs while they are built. */
export class Checks {
  readonly #checks: Check[] = [];

  /** Adds a check. Throws when its name is taken. */
  add(check: Check): void {
    if (this.#checks.some(({ name }) => name === check.name))
      throw new Error(`a check named ${check.name} exists already`);
    this.#checks.push(check);
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

/** Whether all caches have been filled once; names those that have not. */
export function cachesSynced(caches: () => Iterable<{ readonly kind: string; readonly hasSynced: boolean }>): Check {
  return {
    name: 'caches',
    check() {
      const missing = [...caches()].filter(({ hasSynced }) => !hasSynced).map(({ kind }) => kind);
      return missing.length === 0 ? { ok: true } : { ok: false, detail: `not synced: ${missing.join(', ')}` };
    },
  };
}

/** Who holds a Lease. A process that stands by is ready too: it says so. */
export function leadership(
  lease: string,
  elector: { readonly isLeading: boolean; readonly holder: string | undefined },
): Check {
  return {
    name: `lease ${lease}`,
    check() {
      if (elector.isLeading) return { ok: true, detail: 'leading' };
      return {
        ok: true,
        detail: elector.holder === undefined ? 'standing by' : `standing by, held by ${elector.holder}`,
      };
    },
  };
}

/**
 * Whether every cluster answers. A frozen one does not make the process unready: a restart would not bring the API server
 * back, and readiness gates nothing here; the detail says since when and why.
 */
export function clustersReachable(states: () => readonly ClusterState[], monotonicMs: () => number): Check {
  return {
    name: 'clusters',
    check() {
      const nowMs = monotonicMs();
      return {
        ok: true,
        detail: states()
          .map((state) => describe(state, nowMs))
          .join('; '),
      };
    },
  };
}

function describe({ cluster, outage, firstFailureMs, lastError = 'no answer' }: ClusterState, nowMs: number): string {
  if (firstFailureMs === undefined) return `${cluster}: reachable`;
  const length = describeLength(nowMs - firstFailureMs);
  if (outage === undefined) return `${cluster}: failing for ${length} (${lastError})`;
  return `${cluster}: frozen, ${describeOutage(outage)}, for ${length} now, last answer to a probe: ${lastError}`;
}
