import { POOL_LEASE_NAMESPACE, readyCondition, type IronCoreMachinePool } from '../api/machine-pool.ts';
import { isBeingDeleted, refOf } from '../../../apis/meta.ts';
import type { Lease } from '../../../apis/wire.ts';
import { ignoreNotFound } from '../../../kube/client/errors.ts';
import { statusPatch } from '../../../kube/client/patch.ts';
import { leases } from '../../../kube/client/resource.ts';
import { ironCoreMachinePools } from '../api/resources.ts';
import { dated, withCondition } from '../../../work/reconcile/conditions.ts';
import { requeue, stop, type StepResult } from '../../../work/reconcile/result.ts';
import type { IronCoreCollaborators } from './collaborators.ts';
import type { IronCoreCondition } from '../api/reference.ts';

type Deps = Pick<IronCoreCollaborators, 'pools' | 'poolLeases' | 'reader' | 'writer' | 'clock'>;

/** Says of a pool that nobody looks after that nothing is known of it: nothing is placed there then, and what is there stays. */
export class PoolHealth {
  readonly #deps: Deps;
  readonly #silences = new Map<string, PoolSilence>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** The API server was away: nobody could show anything, and each pool gets its whole time anew. */
  forgive(): void {
    this.#silences.clear();
  }

  async reconcile(name: string, signal: AbortSignal): Promise<StepResult> {
    const { pools, poolLeases, reader, clock } = this.#deps;
    const pool = pools.get(name);
    if (pool === undefined || isBeingDeleted(pool)) {
      this.#silences.delete(name);
      return stop;
    }
    const seen = this.#listen(pool, poolLeases.get(`${POOL_LEASE_NAMESPACE}/${name}`));
    const leftMs = seen.sinceMs + LONGEST_SILENCE_MS - clock.monotonicMs();
    if (leftMs > 0) return requeue(leftMs, 'the next heartbeat of the pool');
    if (readyCondition(pool)?.status === 'Unknown') return stop;
    // A watch that has stalled hears nothing either.
    const ref = { namespace: POOL_LEASE_NAMESPACE, name };
    const live = await reader.get(leases, ref, { signal }).catch(ignoreNotFound);
    if (live?.spec?.renewTime !== seen.renewTime) {
      this.#listen(pool, live);
      return requeue(LONGEST_SILENCE_MS, 'the next heartbeat of the pool');
    }
    await this.#reportUnknown(pool, signal);
    return stop;
  }

  #listen(pool: IronCoreMachinePool, lease: Lease | undefined): PoolSilence {
    const { name, uid } = pool.metadata;
    const signs = { renewTime: lease?.spec?.renewTime, ready: readyCondition(pool) };
    const silence = listenTo(this.#silences.get(name), uid, signs, this.#deps.clock.monotonicMs());
    this.#silences.set(name, silence);
    return silence;
  }

  async #reportUnknown(pool: IronCoreMachinePool, signal: AbortSignal): Promise<void> {
    const { writer, clock } = this.#deps;
    const unknown = {
      type: 'Ready',
      status: 'Unknown',
      reason: 'MachinePoolStatusUnknown',
      message: `the Lease of the pool has not been renewed for ${LONGEST_SILENCE_MS / 1_000} s`,
      ...(pool.metadata.generation !== undefined && { observedGeneration: pool.metadata.generation }),
    } as const;
    const { conditions } = pool.status ?? {};
    const current = dated(unknown, conditions, clock.now());
    const patch = statusPatch(pool, { conditions: withCondition(conditions, current) });
    await writer.patch('change', ironCoreMachinePools, refOf(pool), patch, { signal }).catch(ignoreNotFound);
  }
}

/** What a pool shows of being looked after. */
export interface PoolSigns {
  /** Of its Lease; undefined: there is none. */
  readonly renewTime: string | undefined;
  readonly ready: Pick<IronCoreCondition, 'status' | 'observedGeneration'> | undefined;
}

/** The signs of a pool, and since when they have been the same (monotonic). */
interface PoolSilence extends PoolSigns {
  readonly uid: string;
  readonly sinceMs: number;
}

/** A pool that shows nothing new for so long is looked after by nobody: five times as long as it takes between two signs. */
const LONGEST_SILENCE_MS = 50_000;

/**
 * What is known of a pool with what it shows now. Times are ours alone: the clock of who renews the Lease is not believed. That it is
 * Unknown is no sign: it was said for the lack of them.
 */
export function listenTo(before: PoolSilence | undefined, uid: string, signs: PoolSigns, nowMs: number): PoolSilence {
  const isSame = before?.uid === uid && before.renewTime === signs.renewTime && isSameReady(before.ready, signs.ready);
  return { uid, ...signs, sinceMs: isSame ? before.sinceMs : nowMs };
}

function isSameReady(before: PoolSigns['ready'], now: PoolSigns['ready']): boolean {
  if (now?.status === 'Unknown') return true;
  return before?.status === now?.status && before?.observedGeneration === now?.observedGeneration;
}
