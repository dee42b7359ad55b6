import { isDeepStrictEqual } from 'node:util';

import { POOL_LEASE_NAMESPACE, type IronCoreMachinePool, type IronCoreMachinePoolStatus } from '../api/machine-pool.ts';
import { isBeingDeleted, refOf } from '../../../apis/meta.ts';
import type { PoolRuntime } from '../runtime/gated-runtime.ts';
import { RuntimeError } from '../runtime/error.ts';
import { ApiError, ignoreAlreadyExists, ignoreNotFound } from '../../../kube/client/errors.ts';
import { replacing } from '../../../kube/client/merge-change.ts';
import { statusPatch } from '../../../kube/client/patch.ts';
import { ironCoreMachinePools } from '../api/resources.ts';
import { isEqualInGo } from '../../../kube/client/zero-values.ts';
import { ReportedOnce } from '../../../work/reconcile/reported-once.ts';
import { requeue, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import type { Queue } from '../../../work/workqueue/queue.ts';
import { CLAIMED_BY_ANOTHER, type Rivals } from './machine/rivals.ts';
import type { PoolLeases } from './pool-lease.ts';
import { poolStatus, type Probe } from './pool-status.ts';
import { LEASE_SECONDS } from './pool-tenure.ts';
import type { ServedPools } from './served-pools.ts';
import type { IronCoreCollaborators } from './collaborators.ts';

type Shared = 'pools' | 'classes' | 'machines' | 'poolRecorder' | 'metrics' | 'writer' | 'clock';

interface Deps extends Pick<IronCoreCollaborators, Shared> {
  readonly runtimes: ReadonlyMap<string, Pick<PoolRuntime, 'classes' | 'address'>>;
  /** Of MachinePools that are made here, by name. */
  readonly providerIDs: ReadonlyMap<string, string>;
  readonly leases: Pick<PoolLeases, 'renew'>;
  readonly served: Pick<ServedPools, 'has' | 'set'>;
  readonly rivals: Pick<Rivals, 'whyNot'>;
}

interface Heartbeat {
  readonly atMs: number;
  /** Undefined: the runtime was not asked. Somebody else serves the pool, or it is going. */
  readonly probe: Probe | undefined;
  /** UID of the MachinePool that the Lease was renewed for. */
  readonly poolUID: string | undefined;
}

/** How often a runtime is asked, and a Lease renewed. */
const HEARTBEAT_MS = 10_000;

/**
 * Serves pools: each is there, shows by its Lease that it is looked after, and says whether its runtime answers, which classes that has,
 * and how many Machines of each fit. Labels, taints and all else of the object are the administrator's.
 */
export class IronCorePoolController {
  readonly #deps: Deps;
  readonly #created = new Set<string>();
  readonly #reported = new ReportedOnce();
  readonly #heartbeats = new Map<string, Heartbeat>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Enqueues pools that are served: all of them now, and each when what its status says may have changed. */
  watch(queue: Queue): void {
    const { runtimes, pools, classes, machines } = this.#deps;
    const wake = (name: string | undefined): void => {
      if (name !== undefined && runtimes.has(name)) queue.add(name);
    };
    const wakeAll = (): void => {
      for (const name of runtimes.keys()) queue.add(name);
    };
    wakeAll();
    pools.onChange((old, current) => wake((current ?? old)?.metadata.name));
    classes.onChange((old, current) => {
      if (!isDeepStrictEqual(old?.capabilities, current?.capabilities)) wakeAll();
    });
    machines.onChange((old, current) => {
      const [before, after] = [old, current].map((one) => one?.spec.machinePoolRef?.name);
      if (before !== after) for (const name of [before, after]) wake(name);
    });
  }

  async reconcile(name: string, signal: AbortSignal): Promise<StepResult> {
    const { pools, machines, clock } = this.#deps;
    const pool = pools.get(name);
    if (pool === undefined && !this.#created.has(name)) {
      await this.#create(name, signal);
      return requeue(0, 'the cache to show the pool');
    }
    this.#created.add(name);
    // Whoever takes it away does not want it to be used; it is made again by the next start. What is left there goes with its machines all
    // the same, if nobody else sees to that.
    const isGone = pool === undefined || isBeingDeleted(pool);
    if (isGone && machines.byIndex('pool', name).length === 0) return waitFor('the pool to be created again');
    const { atMs, probe } = await this.#heartbeat(name, pool, signal);
    // It may have changed while the runtime was asked.
    const current = pools.get(name);
    if (current !== undefined && !isBeingDeleted(current) && probe !== undefined)
      await this.#report(current, probe, signal);
    return requeue(atMs + HEARTBEAT_MS - clock.monotonicMs(), 'the next heartbeat');
  }

  /** What the runtime has said at the last heartbeat, which is made when it is due, or when the one before has failed. */
  async #heartbeat(name: string, pool: IronCoreMachinePool | undefined, signal: AbortSignal): Promise<Heartbeat> {
    const { runtimes, leases, clock } = this.#deps;
    const atMs = clock.monotonicMs();
    const last = this.#heartbeats.get(name);
    const poolUID = pool?.metadata.uid;
    // One that was made again is noted before much is made for it.
    const isSame = poolUID === undefined || last?.poolUID === poolUID;
    if (last !== undefined && isSame && atMs - last.atMs < HEARTBEAT_MS) return last;
    const other = await leases.renew(name, poolUID, signal).catch((err: unknown) => {
      if (pool !== undefined && ApiError.is(err, 'NotFound', 'Forbidden', 'Invalid')) this.#reportLease(pool, err);
      // Whoever else serves it has had the time to find that out.
      if (last !== undefined && atMs - last.atMs >= LEASE_SECONDS * 1_000) this.#stop(name);
      throw err;
    });
    this.#serve(name, pool, other);
    const probe =
      other === undefined && pool !== undefined && !isBeingDeleted(pool)
        ? await answerOf(runtimes.get(name), signal)
        : undefined;
    const heartbeat = { atMs, probe, poolUID };
    this.#heartbeats.set(name, heartbeat);
    return heartbeat;
  }

  #stop(name: string): void {
    this.#deps.served.set(name, false);
    this.#deps.metrics.served.set({ pool: name }, 0);
  }

  /** Without it nobody knows whose the pool is. */
  #reportLease(pool: IronCoreMachinePool, { message: why }: ApiError): void {
    const message =
      `Its Lease in namespace ${POOL_LEASE_NAMESPACE} cannot be renewed: ${why}. The pool is not managed until it can be: apply ` +
      'deploy/rbac/ironcore-pools.yaml';
    this.#deps.poolRecorder.event({ object: pool, type: 'Warning', reason: 'LeaseNotRenewed', message });
  }

  /** `other`: who else serves it. */
  #serve(name: string, pool: IronCoreMachinePool | undefined, other: string | undefined): void {
    const { served, poolRecorder, metrics } = this.#deps;
    served.set(name, other === undefined);
    metrics.served.set({ pool: name }, other === undefined ? 1 : 0);
    if (pool !== undefined) {
      this.#reportSharedRuntime(pool);
      this.#reportProviderID(pool);
    }
    if (other === undefined || pool === undefined) return;
    const message =
      `Another process serves the pool: its Lease in namespace ${POOL_LEASE_NAMESPACE} is renewed by ${other}, such as a machinepoollet of ` +
      'IronCore. The pool is not managed here until that ends: stop that process, or remove --ironcore-pool from this one';
    poolRecorder.event({ object: pool, type: 'Warning', reason: 'ServedByAnother', message });
  }

  /** Of two pools with one runtime each counts all of its places. Once for each MachinePool. */
  #reportSharedRuntime(pool: IronCoreMachinePool): void {
    const { runtimes, poolRecorder } = this.#deps;
    const { name, uid } = pool.metadata;
    const address = runtimes.get(name)?.address;
    const others = [...runtimes].filter(([one, runtime]) => one !== name && runtime.address === address);
    if (others.length === 0 || !this.#reported.isNew(uid, 'SharedRuntime')) return;
    const message =
      `--ironcore-pool assigns the runtime at ${address} to MachinePools ${[name, ...others.map(([one]) => one)].toSorted().join(', ')}: each counts the ` +
      'full capacity, so that more machines may be placed than fit. Use a separate runtime for each pool';
    poolRecorder.event({ object: pool, type: 'Warning', reason: 'SharedRuntime', message });
  }

  /** One that was there before keeps what it has. Once for each MachinePool. */
  #reportProviderID(pool: IronCoreMachinePool): void {
    const { providerIDs, poolRecorder } = this.#deps;
    const { name, uid } = pool.metadata;
    const wanted = providerIDs.get(name);
    const { providerID = '' } = pool.spec ?? {};
    if (wanted === undefined || wanted === providerID || !this.#reported.isNew(uid, 'ProviderIDDiffers')) return;
    const message =
      providerID === ''
        ? `spec.providerID is not set because the MachinePool already existed: set it to ${wanted}, the value of --ironcore-pool-provider-id`
        : `spec.providerID is ${providerID} and cannot be changed; --ironcore-pool-provider-id is ${wanted}: correct the flag`;
    poolRecorder.event({ object: pool, type: 'Warning', reason: 'ProviderIDDiffers', message });
  }

  async #create(name: string, signal: AbortSignal): Promise<void> {
    const { writer, providerIDs } = this.#deps;
    const providerID = providerIDs.get(name);
    const spec = providerID === undefined ? {} : { providerID };
    await writer
      .create('create', ironCoreMachinePools, { metadata: { name }, spec }, { signal })
      .catch(ignoreAlreadyExists);
    this.#created.add(name);
  }

  async #report(pool: IronCoreMachinePool, probe: Probe, signal: AbortSignal): Promise<void> {
    const { classes, machines, writer, clock, rivals } = this.#deps;
    const before = pool.status ?? {};
    const { name } = pool.metadata;
    const why = rivals.whyNot(name);
    const facts = {
      pool,
      probe: why === undefined ? probe : ({ why, state: 'Error', reason: CLAIMED_BY_ANOTHER } as const),
      classes: classes.list(),
      machines: machines.byIndex('pool', name),
    };
    const after = poolStatus(facts, clock.now());
    if (isEqualInGo(before, after)) return;
    const change = replacing<IronCoreMachinePoolStatus>(before, after);
    if (change === null) return;
    const patch = statusPatch(pool, change);
    await writer.patch('change', ironCoreMachinePools, refOf(pool), patch, { signal }).catch(ignoreNotFound);
  }
}

async function answerOf(runtime: Pick<PoolRuntime, 'classes'> | undefined, signal: AbortSignal): Promise<Probe> {
  try {
    return { classes: (await runtime?.classes(signal)) ?? [] };
  } catch (err) {
    signal.throwIfAborted();
    if (!(err instanceof RuntimeError)) throw err;
    return { why: err.detail, state: 'Offline', reason: 'RuntimeUnreachable' };
  }
}
