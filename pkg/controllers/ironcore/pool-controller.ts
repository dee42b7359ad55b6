import { isDeepStrictEqual } from 'node:util';

import type { IronCoreMachine } from '../../apis/ironcore/machine.ts';
import type { IronCoreMachineClass } from '../../apis/ironcore/machine-class.ts';
import type { IronCoreMachinePool, IronCoreMachinePoolStatus } from '../../apis/ironcore/machine-pool.ts';
import { isBeingDeleted, refOf } from '../../apis/meta.ts';
import type { Informer } from '../../cache/lister.ts';
import type { Clock } from '../../clock/clock.ts';
import type { PoolRuntime } from '../../ironcore-runtime/gated-runtime.ts';
import { RuntimeError } from '../../ironcore-runtime/error.ts';
import type { Writer } from '../../kube/client.ts';
import { ignoreAlreadyExists, ignoreNotFound } from '../../kube/errors.ts';
import { replacing } from '../../kube/merge-change.ts';
import { statusPatch } from '../../kube/patch.ts';
import { ironCoreMachinePools } from '../../kube/resource.ts';
import { requeue, waitFor, type StepResult } from '../../reconcile/result.ts';
import type { Queue } from '../../workqueue/queue.ts';
import type { PoolLeases } from './pool-lease.ts';
import { poolStatus, type Probe } from './pool-status.ts';

/** What pools are served with. */
export interface PoolControllerDeps {
  readonly runtimes: ReadonlyMap<string, Pick<PoolRuntime, 'classes'>>;
  readonly pools: Informer<IronCoreMachinePool>;
  readonly classes: Informer<IronCoreMachineClass>;
  /** Indexes: `pool`. */
  readonly machines: Informer<IronCoreMachine>;
  readonly leases: Pick<PoolLeases, 'renew'>;
  readonly writer: Pick<Writer, 'create' | 'patch'>;
  readonly clock: Clock;
}

interface Heartbeat {
  readonly atMs: number;
  readonly probe: Probe;
}

/** How often a runtime is asked, and a Lease renewed. */
const HEARTBEAT_MS = 10_000;

/**
 * Serves pools: each is there, shows by its Lease that it is looked after, and says whether its runtime answers, which classes that has,
 * and how many Machines of each fit. Labels, taints and all else of the object are the administrator's.
 */
export class PoolController {
  readonly #deps: PoolControllerDeps;
  readonly #created = new Set<string>();
  readonly #heartbeats = new Map<string, Heartbeat>();

  constructor(deps: PoolControllerDeps) {
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

  /** One pass over one pool. What it throws is retried with back-off. */
  async reconcile(name: string, signal: AbortSignal): Promise<StepResult> {
    const { pools, clock } = this.#deps;
    const pool = pools.get(name);
    if (pool === undefined && !this.#created.has(name)) {
      await this.#create(name, signal);
      return requeue(0, 'the pool to be seen');
    }
    this.#created.add(name);
    // Whoever takes it away does not want it to be used; it is made again by the next start.
    if (pool === undefined || isBeingDeleted(pool)) return waitFor('the pool to be created again');
    const { atMs, probe } = await this.#heartbeat(name, signal);
    // It may have changed while the runtime was asked.
    const current = pools.get(name);
    if (current !== undefined) await this.#tell(current, probe, signal);
    return requeue(atMs + HEARTBEAT_MS - clock.monotonicMs(), 'the next heartbeat');
  }

  /** What the runtime has said at the last heartbeat, which is made when it is due, or when the one before has failed. */
  async #heartbeat(name: string, signal: AbortSignal): Promise<Heartbeat> {
    const { runtimes, leases, clock } = this.#deps;
    const atMs = clock.monotonicMs();
    const last = this.#heartbeats.get(name);
    if (last !== undefined && atMs - last.atMs < HEARTBEAT_MS) return last;
    const [probe] = await Promise.all([answerOf(runtimes.get(name), signal), leases.renew(name, signal)]);
    const heartbeat = { atMs, probe };
    this.#heartbeats.set(name, heartbeat);
    return heartbeat;
  }

  async #create(name: string, signal: AbortSignal): Promise<void> {
    const { writer } = this.#deps;
    await writer
      .create('create', ironCoreMachinePools, { metadata: { name }, spec: {} }, { signal })
      .catch(ignoreAlreadyExists);
    this.#created.add(name);
  }

  async #tell(pool: IronCoreMachinePool, probe: Probe, signal: AbortSignal): Promise<void> {
    const { classes, machines, writer, clock } = this.#deps;
    const before = pool.status ?? {};
    const inPool = machines.byIndex('pool', pool.metadata.name);
    const after = poolStatus({ pool, probe, classes: classes.list(), machines: inPool }, clock.now());
    if (isDeepStrictEqual(before, after)) return;
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
    return { why: err.detail };
  }
}
