import type { IronCoreMachinePool } from '../../api/machine-pool.ts';
import { TAKE_OVER_CLAIMS_ANNOTATION } from '../../../../apis/machine/v1alpha1/labels.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import {
  claimFrom,
  claimText,
  grantedClaims,
  isRecordedClaim,
  withClaim,
  type RecordedClaims,
  type PoolClaim,
} from '../pool-claims.ts';
import { CLAIM } from './keys.ts';
import type { IronCoreCollaborators } from '../collaborators.ts';

/** Reason of condition Ready of a MachinePool and its Machines, and of the Event. */
export const CLAIMED_BY_ANOTHER = 'ClaimedByAnother';

type Deps = Pick<IronCoreCollaborators, 'claims' | 'poolRecorder'>;

/**
 * Who else looks after machines of the pools of this process. A cluster that was made from a backup has all UIDs of the one before, so that
 * both take the machines at a runtime for theirs. What they cannot share is the claim of a process that the Lease of the one has heard of and
 * that of the other has not: whoever finds such a claim touches nothing in that pool until somebody says whose the machines are.
 */
export class Rivals {
  readonly #deps: Deps;
  /** By pool, what was found when all its machines were looked at last; no entry: they were not yet. */
  readonly #rivals = new Map<string, RecordedClaims>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** These are all machines of this cluster at the runtime of a pool. Whether somebody else claims one of them. */
  saw(poolName: string, pool: IronCoreMachinePool | undefined, machines: readonly RuntimeMachine[]): boolean {
    const found = this.#foreign(poolName, pool, machines);
    const before = this.#rivals.get(poolName);
    this.#rivals.set(poolName, found);
    if (found.size > 0 && (before?.size ?? 0) === 0 && pool !== undefined) {
      const message = messageOf(poolName, found);
      this.#deps.poolRecorder.event({ object: pool, type: 'Warning', reason: CLAIMED_BY_ANOTHER, message });
    }
    return found.size > 0;
  }

  /** Whether the machines of a pool have been looked at. */
  has(pool: string): boolean {
    return this.#rivals.has(pool);
  }

  /**
   * Why nothing may be touched in a pool; undefined: nobody else claims anything there. `shown` are some of its machines, as of now: what they
   * say counts before all have been looked at again.
   */
  whyNot(poolName: string, pool?: IronCoreMachinePool, shown: readonly RuntimeMachine[] = []): string | undefined {
    const found = new Map([...(this.#rivals.get(poolName) ?? []), ...this.#foreign(poolName, pool, shown)]);
    return found.size === 0 ? undefined : messageOf(poolName, found);
  }

  forget(pool: string): void {
    this.#rivals.delete(pool);
  }

  #foreign(
    poolName: string,
    pool: IronCoreMachinePool | undefined,
    machines: readonly RuntimeMachine[],
  ): RecordedClaims {
    const known = this.#deps.claims.of(poolName) ?? new Map<string, number>();
    const given = pool === undefined ? new Map<string, number>() : grantedClaims(pool);
    return machines
      .flatMap((machine) => poolClaimOf(machine) ?? [])
      .filter((claim) => !isRecordedClaim(known, claim) && !isRecordedClaim(given, claim))
      .reduce(withClaim, new Map() as RecordedClaims);
  }
}

/** Who looked after a machine last; undefined: it does not say. */
export function poolClaimOf({ metadata }: Pick<RuntimeMachine, 'metadata'>): PoolClaim | undefined {
  return claimFrom(metadata.annotations[CLAIM] ?? '');
}

function messageOf(pool: string, found: RecordedClaims): string {
  const claims = [...found].map(([process, renewals]) => claimText({ process, renewals })).join(',');
  return (
    `Machines at the runtime of MachinePool ${pool} are claimed by a process that the Lease of the pool does not name (${claims}). Either another ` +
    'cluster with the same UIDs uses the same runtime (one of the two was created from a backup), or this cluster was restored from a backup. ' +
    'Not creating, changing or deleting anything there. Stop the manager of the other cluster, or give it another runtime. If the machines then ' +
    `belong to this cluster, run: kubectl annotate --overwrite machinepools.compute.ironcore.dev ${pool} ${TAKE_OVER_CLAIMS_ANNOTATION}=${claims}`
  );
}
