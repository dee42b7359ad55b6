import type { IronCoreMachinePool } from '../../api/machine-pool.ts';
import { RuntimeError } from '../../runtime/error.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { ignoreNotFound } from '../../../../kube/client/errors.ts';
import { ironCoreMachinePools, ironCoreMachines } from '../../api/resources.ts';
import { releaseOf } from '../../../../controllers/vms/orphan-release.ts';
import { deleteRuntimeMachine } from './carry-out.ts';
import { formerUIDsOf, poolUIDOf } from './former-pools.ts';
import { MACHINE_NAMESPACE_LABEL, NAME_LABEL, UID_LABEL } from './keys.ts';
import { MachineClaims } from './machine-claims.ts';
import { machineKey, presentOwner, ownerOf, OWNERS, type ByID } from './owner-of.ts';
import { judgeOwnerless, OWNERLESS_MS, type Ownerless } from './ownerless.ts';
import type { RelistDeps } from './relist.ts';

interface Cleaning {
  /** Some are to be looked at again soon. */
  readonly isCleaning: boolean;
  /** Why the runtime has not deleted one; the first. */
  readonly refusal: RuntimeError | undefined;
  /** Somebody else claims machines of the pool: nothing was touched. */
  readonly isContested: boolean;
}

/** Machines of pools that have no Machine: those whose Machine went without them are deleted, the others are kept, and told of. */
export class OwnerlessMachines {
  readonly #deps: RelistDeps;
  readonly #claims: MachineClaims;
  /** By pool, since when each machine has had no Machine, by id. */
  readonly #sinceMs = new Map<string, ReadonlyMap<string, number>>();

  constructor(deps: RelistDeps) {
    this.#deps = deps;
    this.#claims = new MachineClaims(deps);
  }

  /** Deletes what may be deleted of the machines without a Machine. One that the runtime refuses to delete holds up nothing else. */
  async clean(
    poolName: string,
    machines: readonly RuntimeMachine[],
    byID: ByID,
    signal: AbortSignal,
  ): Promise<Cleaning> {
    const { pools, clock, departures, kept, metrics, rivals } = this.#deps;
    const pool = pools.get(poolName);
    const poolUIDs = new Set(pools.list().map(({ metadata }) => metadata.uid));
    const noted = this.#deps.poolUIDs.of(poolName);
    const formerUIDs = pool === undefined ? [] : [...formerUIDsOf(pool), ...noted].filter((uid) => !poolUIDs.has(uid));
    const ownUIDs = new Set(pool === undefined ? [] : [...formerUIDs, pool.metadata.uid]);
    const pooled = { own: ownUIDs, all: poolUIDs };
    const owners = Map.groupBy(machines, (one) => ownerOf(this.#deps.machines, one, pooled, byID));
    for (const owner of OWNERS) metrics.machines.set({ pool: poolName, owner }, owners.get(owner)?.length ?? 0);
    const [none, unknown, other] = [owners.get('none') ?? [], owners.get('former') ?? [], owners.get('other') ?? []];
    const withMachine = owners.get('machine') ?? [];
    const owned = withMachine.flatMap((machine) => {
      const owner = presentOwner(this.#deps.machines, machine, byID);
      return owner === undefined ? [] : [{ machine, owner }];
    });
    // Also of a pool that is held: what is used there is no less in use.
    for (const key of this.#deps.keptUses.saw(poolName, [...none, ...unknown], other, owned)) this.#deps.wake(key);
    const ours = [...withMachine, ...none];
    const isContested = rivals.saw(poolName, pool, ours);
    metrics.contested.set({ pool: poolName }, isContested ? 1 : 0);
    if (isContested) {
      // How long they have had no Machine is counted anew.
      this.#sinceMs.delete(poolName);
      return { isCleaning: false, refusal: undefined, isContested };
    }
    const areMoreDue = await this.#claims.renew(poolName, ours, signal);
    const alone = [...none, ...unknown].filter(({ metadata }) => metadata.deletedAt === 0n);
    const before = this.#sinceMs.get(poolName);
    const nowMs = clock.monotonicMs();
    const sinceMs = new Map(alone.map(({ metadata: { id } }) => [id, before?.get(id) ?? nowMs]));
    this.#sinceMs.set(poolName, sinceMs);
    const withAge = (machine: RuntimeMachine): Ownerless => ({
      machine,
      forMs: nowMs - (sinceMs.get(machine.metadata.id) ?? nowMs),
    });
    const ownerless = alone.filter((one) => none.includes(one)).map(withAge);
    const ofFormer = alone.filter((one) => unknown.includes(one)).map(withAge);
    const isYoung = areMoreDue || [...ownerless, ...ofFormer].some(({ forMs }) => forMs < OWNERLESS_MS);
    const keptOfFormer = ofFormer.filter(({ forMs }) => forMs >= OWNERLESS_MS).map(({ machine }) => machine);
    if (pool === undefined) {
      // There is nothing to write a condition to.
      metrics.kept.set({ pool: poolName }, keptOfFormer.length);
      return { isCleaning: isYoung, refusal: undefined, isContested };
    }
    const release = releaseOf(pool, clock.now());
    const verdict = judgeOwnerless(ownerless, { wasDeleted: (uid) => departures.has(uid), release });
    let refusal: RuntimeError | undefined;
    for (const machine of verdict.remove) {
      await this.#removeIfOwnerless(pool, machine, signal).catch((err: unknown) => {
        if (!(err instanceof RuntimeError) || err.unanswered) throw err;
        refusal ??= err;
      });
    }
    await kept.report(pool, { ...verdict, former: keptOfFormer }, release, signal);
    return { isCleaning: verdict.remove.length > 0 || isYoung, refusal, isContested };
  }

  forget(poolName: string): void {
    this.#sinceMs.delete(poolName);
    this.#claims.forget(poolName);
  }

  /** The cache may be late: the API server is asked before anything is deleted. */
  async #removeIfOwnerless(
    { metadata: { name: pool, uid } }: IronCoreMachinePool,
    machine: RuntimeMachine,
    signal: AbortSignal,
  ): Promise<void> {
    const { reader, runtimes, sightings, log } = this.#deps;
    const { id, labels } = machine.metadata;
    const ref = { namespace: labels[MACHINE_NAMESPACE_LABEL] ?? '', name: labels[NAME_LABEL] ?? '' };
    const live = await reader.get(ironCoreMachines, ref, { signal }).catch(ignoreNotFound);
    if (live?.metadata.uid === labels[UID_LABEL]) return;
    if (poolUIDOf(machine) !== uid) {
      // Of a former pool, as the Lease or somebody has said: not if it is one that is there.
      const { items } = await reader.list(ironCoreMachinePools, { signal });
      if (items.some(({ metadata }) => metadata.uid === poolUIDOf(machine))) return;
    }
    const runtime = runtimes.get(pool);
    if (runtime === undefined) return;
    const isAccepted = await deleteRuntimeMachine(runtime, machineKey(machine), id, signal);
    if (isAccepted) sightings.deletionSent(pool, id, labels[UID_LABEL] ?? '');
    log.warn({ pool, runtimeMachine: id, machine: machineKey(machine) }, 'deleted a machine whose Machine is gone');
  }
}
