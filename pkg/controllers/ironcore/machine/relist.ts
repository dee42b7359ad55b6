import { hasFinalizer } from '../../../apis/finalizers.ts';
import type { IronCoreMachine } from '../../../apis/ironcore/machine.ts';
import type { IronCoreMachinePool } from '../../../apis/ironcore/machine-pool.ts';
import { keyOf } from '../../../apis/meta.ts';
import type { Lister } from '../../../cache/lister.ts';
import type { Clock } from '../../../clock/clock.ts';
import { RuntimeError } from '../../../ironcore-runtime/error.ts';
import type { PoolRuntime } from '../../../ironcore-runtime/gated-runtime.ts';
import { MachineState, VolumeState } from '../../../ironcore-runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeMachine } from '../../../ironcore-runtime/runtime.ts';
import type { Reader } from '../../../kube/client.ts';
import { ignoreNotFound } from '../../../kube/errors.ts';
import { ironCoreMachinePools, ironCoreMachines } from '../../../kube/resource.ts';
import type { Logger } from '../../../log/logger.ts';
import type { IronCoreMetrics } from '../../../metrics/ironcore.ts';
import { requeue, stop, waitFor, type StepResult } from '../../../reconcile/result.ts';
import { releaseOf } from '../../vms/orphan-release.ts';
import { claimText, isForgottenSoon, type PoolClaims } from '../pool-claims.ts';
import type { PoolUIDs } from '../pool-uids.ts';
import type { ServedPools } from '../served-pools.ts';
import { deleteRuntimeMachine } from './carry-out.ts';
import type { Departures } from './departures.ts';
import { formerUIDsOf, poolUIDOf } from './former-pools.ts';
import type { KeptMachines } from './kept-machines.ts';
import type { KeptUses } from './kept-uses.ts';
import type { LeftClaims } from './left-claims.ts';
import { CLAIM, IRONCORE_MACHINE_FINALIZER, NAME_LABEL, MACHINE_NAMESPACE_LABEL, UID_LABEL } from './keys.ts';
import { judgeOwnerless, OWNERLESS_MS, type Ownerless } from './ownerless.ts';
import { isHeldAsMissing } from './missing-machines.ts';
import { poolClaimOf, type Rivals } from './rivals.ts';
import { isMachineOf, runtimeIDOf } from './runtime-id.ts';
import type { RuntimeEvents } from './runtime-events.ts';
import { listRuntimeMachines, type Sightings } from './sightings.ts';

/** What the machines of pools are looked at with. */
export interface RelistDeps {
  /** Pools that nobody else serves: of others nothing is touched. */
  readonly served: Pick<ServedPools, 'has'>;
  readonly runtimes: ReadonlyMap<string, PoolRuntime>;
  /** Index: `pool`. */
  readonly machines: Lister<IronCoreMachine>;
  readonly pools: Lister<IronCoreMachinePool>;
  /** What the Leases of pools note. */
  readonly poolUIDs: Pick<PoolUIDs, 'of'>;
  readonly claims: Pick<PoolClaims, 'of' | 'ownOf'>;
  readonly rivals: Pick<Rivals, 'saw' | 'forget'>;
  readonly reader: Pick<Reader, 'get' | 'list'>;
  readonly departures: Pick<Departures, 'has'>;
  readonly kept: Pick<KeptMachines, 'report' | 'leave'>;
  readonly keptUses: Pick<KeptUses, 'saw' | 'failed' | 'forget'>;
  readonly sightings: Pick<Sightings, 'saw' | 'deletionSent' | 'forget'>;
  readonly leftClaims: Pick<LeftClaims, 'release' | 'leave'>;
  readonly events: Pick<RuntimeEvents, 'report'>;
  readonly metrics: Pick<IronCoreMetrics, 'machines' | 'kept' | 'missing' | 'contested'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** What a Machine is at its runtime has changed. */
  readonly wake: (machineKey: string) => void;
}

/** How often all machines of a runtime are looked at while something is on its way, and at rest: one that goes is seen going then. */
const SOON_MS = 1_000;
const REST_MS = 5_000;
/** How soon a runtime that does not answer is asked again. */
const AWAY_MS = 5_000;
/** How often the oldest machine of a pool is claimed anew: a backup that is older than that is told by it. */
const CLAIM_MS = 60_000;
/** So many are claimed at one look. */
const CLAIMS_AT_ONCE = 20;

/**
 * Whose a machine at a runtime is: of a Machine; of none, and made for this MachinePool; of none, and made for a MachinePool that is not
 * there; of anybody else.
 */
type Owner = 'machine' | 'none' | 'former' | 'other';
const OWNERS: readonly Owner[] = ['machine', 'none', 'former', 'other'];

/** Machines of a pool by the ids that they have at its runtime. */
type ByID = ReadonlyMap<string, IronCoreMachine>;

/** What became of the machines without a Machine. */
interface Cleaning {
  /** Some are to be looked at again soon. */
  readonly isCleaning: boolean;
  /** Why the runtime has not deleted one; the first. */
  readonly refusal: RuntimeError | undefined;
  /** Somebody else claims machines of the pool: nothing was touched. */
  readonly isContested: boolean;
}

interface RecordedMachine {
  /** What each machine was like, by id. */
  shapes: ReadonlyMap<string, { readonly shape: string; readonly key: string }>;
  /** Since when each machine has had no Machine, by id. */
  ownerlessSinceMs: ReadonlyMap<string, number>;
  /** It did not answer the last time. */
  isAway: boolean;
  /** Somebody else claimed machines the last time. */
  isContested: boolean;
  /** The machine that was claimed last, so that its claim shows whether somebody else does, and when. */
  witness: { readonly id: string; readonly atMs: number } | undefined;
}

/**
 * Looks at all machines of a pool's runtime: wakes those that have changed, deletes those whose Machine went without them, and has told
 * what the runtime tells of them, and which are kept without a Machine.
 */
export class Relist {
  readonly #deps: RelistDeps;
  readonly #recorded = new Map<string, RecordedMachine>();

  constructor(deps: RelistDeps) {
    this.#deps = deps;
  }

  /** One look at one pool. What it throws is retried with back-off. */
  async reconcile(pool: string, signal: AbortSignal): Promise<StepResult> {
    const runtime = this.#deps.runtimes.get(pool);
    if (runtime === undefined) return stop;
    if (!this.#deps.served.has(pool)) {
      // What it has seen is another's doing by the time it serves the pool again.
      if (this.#recorded.has(pool)) await this.#leave(pool, signal);
      return waitFor('the pool to be served by this process');
    }
    // Without it nobody could tell whether somebody else claims what is there.
    if (this.#deps.claims.of(pool) === undefined) return requeue(SOON_MS, 'the Lease of the pool to be renewed');
    const known = this.#recorded.get(pool) ?? newlyKnown();
    this.#recorded.set(pool, known);
    const shown = await listRuntimeMachines(runtime, {}, signal).catch((err: unknown) => {
      if (!(err instanceof RuntimeError) || signal.aborted) throw err;
      if (!known.isAway) this.#deps.log.warn({ pool, err: err.message }, 'a runtime cannot list its machines');
      this.#deps.keptUses.failed(pool, err.message);
    });
    // That it does not answer at all is what its MachinePool says.
    if (shown === undefined) {
      known.isAway = true;
      return requeue(AWAY_MS, 'the runtime to answer');
    }
    this.#deps.sightings.saw(pool, shown);
    const { machines } = shown;
    const inPool = this.#deps.machines.byIndex('pool', pool);
    this.#deps.metrics.missing.set({ pool }, inPool.filter(isHeldAsMissing).length);
    const byID = new Map(inPool.map((machine) => [runtimeIDOf(machine), machine]));
    this.#wakeChanged(known, machines, byID);
    // What was tried meanwhile need not wait for its back-off.
    if (known.isAway) for (const machine of inPool) this.#deps.wake(keyOf(machine));
    known.isAway = false;
    const { isCleaning, refusal, isContested } = await this.#judge(pool, known, machines, byID, signal);
    if (known.isContested && !isContested) for (const machine of inPool) this.#deps.wake(keyOf(machine));
    known.isContested = isContested;
    await this.#deps.events.report(pool, runtime, machines, signal);
    if (isContested) return requeue(REST_MS, 'no other process to claim the pool');
    const isBusy = isCleaning || machines.some(isOnItsWay);
    const leftClaimsMs = await this.#deps.leftClaims.release(pool, shown, signal);
    if (refusal !== undefined) throw refusal;
    return requeue(isBusy ? SOON_MS : Math.min(REST_MS, leftClaimsMs), 'the next list of the machines of the runtime');
  }

  /** Nothing is known of it any more, and nothing that was said of it stays. */
  async #leave(poolName: string, signal: AbortSignal): Promise<void> {
    const { keptUses, sightings, rivals, leftClaims, metrics, pools, kept } = this.#deps;
    keptUses.forget(poolName);
    sightings.forget(poolName);
    rivals.forget(poolName);
    metrics.contested.remove({ pool: poolName });
    for (const owner of OWNERS) metrics.machines.remove({ pool: poolName, owner });
    metrics.kept.remove({ pool: poolName });
    metrics.missing.remove({ pool: poolName });
    const pool = pools.get(poolName);
    if (pool !== undefined) await kept.leave(pool, signal);
    await leftClaims.leave(poolName, signal);
    this.#recorded.delete(poolName);
  }

  #wakeChanged(known: RecordedMachine, machines: readonly RuntimeMachine[], byID: ByID): void {
    const shapes = new Map(
      machines.map((one) => {
        const key = isNamed(one) ? machineKey(one) : keyOfOwner(one, byID);
        return [one.metadata.id, { shape: shapeOf(one), key }];
      }),
    );
    for (const [id, { shape, key }] of shapes) if (known.shapes.get(id)?.shape !== shape) this.#deps.wake(key);
    for (const [id, { key }] of known.shapes) if (!shapes.has(id)) this.#deps.wake(key);
    known.shapes = shapes;
  }

  /** Deletes what may be deleted of the machines without a Machine. One that the runtime refuses to delete holds up nothing else. */
  async #judge(
    poolName: string,
    known: RecordedMachine,
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
    const owners = Map.groupBy(machines, (one) => this.#ownerOf(one, ownUIDs, poolUIDs, byID));
    for (const owner of OWNERS) metrics.machines.set({ pool: poolName, owner }, owners.get(owner)?.length ?? 0);
    const [none, unknown, other] = [owners.get('none') ?? [], owners.get('former') ?? [], owners.get('other') ?? []];
    this.#deps.keptUses.saw(poolName, [...none, ...unknown], other);
    const ours = [...(owners.get('machine') ?? []), ...none];
    const isContested = rivals.saw(poolName, pool, ours);
    metrics.contested.set({ pool: poolName }, isContested ? 1 : 0);
    if (isContested) {
      // How long they have had no Machine is counted anew.
      known.ownerlessSinceMs = new Map();
      return { isCleaning: false, refusal: undefined, isContested };
    }
    const areMoreDue = await this.#claim(poolName, known, ours, signal);
    const alone = [...none, ...unknown].filter(({ metadata }) => metadata.deletedAt === 0n);
    const before = known.ownerlessSinceMs;
    const nowMs = clock.monotonicMs();
    known.ownerlessSinceMs = new Map(alone.map(({ metadata: { id } }) => [id, before.get(id) ?? nowMs]));
    const withAge = (machine: RuntimeMachine): Ownerless => ({
      machine,
      forMs: nowMs - (known.ownerlessSinceMs.get(machine.metadata.id) ?? nowMs),
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

  /**
   * Lets machines of the pool say that this process looks after them: the oldest, from time to time, and those whose claim would be
   * forgotten, or was somebody else's. One that cannot be claimed holds up nothing. Says whether more are due.
   */
  async #claim(
    poolName: string,
    known: RecordedMachine,
    ours: readonly RuntimeMachine[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { claims, runtimes, clock } = this.#deps;
    const [own, all, runtime] = [claims.ownOf(poolName), claims.of(poolName), runtimes.get(poolName)];
    if (own === undefined || all === undefined || runtime === undefined) return false;
    const left = ours.filter(({ metadata }) => metadata.deletedAt === 0n).toSorted(byAge);
    const [oldest] = left;
    const nowMs = clock.monotonicMs();
    const isSame = known.witness?.id === oldest?.metadata.id;
    const isWitnessDue = !isSame || nowMs - (known.witness?.atMs ?? nowMs) >= CLAIM_MS;
    if (isWitnessDue) known.witness = oldest && { id: oldest.metadata.id, atMs: nowMs };
    const due = left.filter((one) => {
      const claim = poolClaimOf(one);
      return (one === oldest && isWitnessDue) || (claim !== undefined && isForgottenSoon(all, claim));
    });
    let isRefused = false;
    for (const machine of due.slice(0, CLAIMS_AT_ONCE)) {
      const { id, annotations } = machine.metadata;
      const claimed = { ...annotations, [CLAIM]: claimText(own) };
      await runtime.annotate(machineKey(machine), id, claimed, signal).catch((err: unknown) => {
        if (!(err instanceof RuntimeError)) throw err;
        isRefused = true;
        this.#deps.log.debug({ pool: poolName, runtimeMachine: id, err: err.message }, 'a machine was not claimed');
      });
    }
    return due.length > CLAIMS_AT_ONCE && !isRefused;
  }

  /** Whose a machine is. Others may use the same runtime, with the same labels. */
  #ownerOf(machine: RuntimeMachine, ownUIDs: ReadonlySet<string>, poolUIDs: ReadonlySet<string>, byID: ByID): Owner {
    if (!isNamed(machine)) return keyOfOwner(machine, byID) === '' ? 'other' : 'machine';
    const owner = cachedMachineOf(this.#deps.machines, machine);
    if (owner !== undefined && isHeld(owner)) return 'machine';
    const poolUID = poolUIDOf(machine);
    if (ownUIDs.has(poolUID)) return 'none';
    return poolUID === '' || poolUIDs.has(poolUID) ? 'other' : 'former';
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

function newlyKnown(): RecordedMachine {
  return {
    shapes: new Map(),
    ownerlessSinceMs: new Map(),
    isAway: false,
    isContested: false,
    witness: undefined,
  };
}

/** The oldest first: whoever has forgotten those that are younger agrees on it. */
function byAge({ metadata: a }: RuntimeMachine, { metadata: b }: RuntimeMachine): number {
  return Number(a.createdAt - b.createdAt) || (a.id < b.id ? -1 : 1);
}

/** The Machine of a machine, as its labels have it; undefined: it is not there. */
export function cachedMachineOf(
  machines: Lister<IronCoreMachine>,
  machine: RuntimeMachine,
): IronCoreMachine | undefined {
  const found = machines.get(machineKey(machine));
  return found !== undefined && found.metadata.uid === machine.metadata.labels[UID_LABEL] ? found : undefined;
}

/** Key of the Machine of a machine, as its labels have it. */
function machineKey({ metadata }: RuntimeMachine): string {
  const { [MACHINE_NAMESPACE_LABEL]: namespace = '', [NAME_LABEL]: name = '' } = metadata.labels;
  return keyOf({ metadata: { namespace, name } });
}

/** Key of the Machine that knows a machine by its id; empty: none does. */
function keyOfOwner(machine: RuntimeMachine, byID: ByID): string {
  const owner = byID.get(machine.metadata.id);
  return owner !== undefined && isMachineOf(owner, machine) ? keyOf(owner) : '';
}

/** Whether it says of which Machine it is: without that nobody can be asked whether there is one. */
function isNamed({ metadata: { labels } }: RuntimeMachine): boolean {
  return [UID_LABEL, MACHINE_NAMESPACE_LABEL, NAME_LABEL].every((key) => (labels[key] ?? '') !== '');
}

/** One whose finalizer was taken away while it was being deleted goes without its machine. */
function isHeld({ metadata }: IronCoreMachine): boolean {
  return metadata.deletionTimestamp === undefined || hasFinalizer({ metadata }, IRONCORE_MACHINE_FINALIZER);
}

/** All that a status shows of a machine. */
function shapeOf({ metadata, status }: RuntimeMachine): string {
  const { generation, deletedAt } = metadata;
  const { observedGeneration, state, volumes, networkInterfaces } = status;
  const numbers = [generation, deletedAt, observedGeneration].map(String);
  return JSON.stringify([...numbers, state, volumes, networkInterfaces]);
}

function isOnItsWay({ metadata, status }: RuntimeMachine): boolean {
  const isPending = ({ state }: { readonly state: number }): boolean => state !== VolumeState.VOLUME_ATTACHED;
  return (
    metadata.deletedAt !== 0n ||
    status.state === MachineState.MACHINE_PENDING ||
    status.state === MachineState.MACHINE_TERMINATING ||
    status.observedGeneration < metadata.generation ||
    status.volumes.some(isPending) ||
    status.networkInterfaces.some(isPending)
  );
}
