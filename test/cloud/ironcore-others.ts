import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Api } from '../../hack/control-plane/api.ts';
import type { IronCoreMachine } from '../../pkg/worlds/ironcore/api/machine.ts';
import {
  capacityFor,
  POOL_LEASE_NAMESPACE,
  readyCondition,
  type IronCoreMachinePool,
} from '../../pkg/worlds/ironcore/api/machine-pool.ts';
import type { List } from '../../pkg/apis/meta.ts';
import { toMicroTimestamp } from '../../pkg/base/clock/clock.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { parseDriverAddress } from '../../pkg/driver/grpc/address.ts';
import { RuntimeClient } from '../../pkg/worlds/ironcore/runtime/client.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { runtimeMachine } from '../fakes/runtime-machine.ts';

const GROUP = '/apis/compute.ironcore.dev/v1alpha1';
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${POOL_LEASE_NAMESPACE}/leases`;
const ROUND_MS = 100;
const FINALIZER = 'machinepoollet.ironcore.dev/machine';

/** What repeats itself until it is disposed of. */
abstract class Repeated implements AsyncDisposable {
  rounds = 0;
  readonly #stop = new AbortController();
  #ended: Promise<void> = Promise.resolve();

  protected begin(): void {
    this.#ended = this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  protected abstract round(): Promise<void>;

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.round();
      this.rounds += 1;
      await sleep(ROUND_MS);
    }
  }
}

/**
 * Places Machines as IronCore's own scheduler does: it takes what pools have free, prefers the largest, and patches machinePoolRef without
 * a look at whether the Machine has one by then. What the API server refuses is forgotten.
 */
export class OtherScheduler extends Repeated {
  /** Writes of its own that were stored, and that were refused. */
  placed = 0;
  refused = 0;
  readonly #api: Api;

  private constructor(api: Api) {
    super();
    this.#api = api;
  }

  static start(api: Api): OtherScheduler {
    const scheduler = new OtherScheduler(api);
    scheduler.begin();
    return scheduler;
  }

  protected async round(): Promise<void> {
    const all = await this.#list<IronCoreMachine>('machines');
    const pools = await this.#list<IronCoreMachinePool>('machinepools');
    const taken = (pool: string): number => all.filter(({ spec }) => spec.machinePoolRef?.name === pool).length;
    const free = new Map(
      pools.map((one) => [one.metadata.name, capacityFor(one, this.#classIn(all)) - taken(one.metadata.name)]),
    );
    for (const { metadata, spec } of all) {
      if (spec.machinePoolRef !== undefined || metadata.deletionTimestamp !== undefined) continue;
      const ready = pools.filter((one) => readyCondition(one)?.status === 'True');
      const [best] = ready.map((one) => one.metadata.name).toSorted((a, b) => (free.get(b) ?? 0) - (free.get(a) ?? 0));
      if (best === undefined || (free.get(best) ?? 0) <= 0) continue;
      const { status } = await this.#api.request(
        `${GROUP}/namespaces/${metadata.namespace}/machines/${metadata.name}`,
        {
          method: 'PATCH',
          contentType: 'application/merge-patch+json',
          body: { spec: { machinePoolRef: { name: best } } },
        },
      );
      if (status === 200) {
        this.placed += 1;
        free.set(best, (free.get(best) ?? 0) - 1);
      } else this.refused += 1;
    }
  }

  #classIn(all: readonly IronCoreMachine[]): string {
    return all[0]?.spec.machineClassRef.name ?? '';
  }

  async #list<T extends IronCoreMachine | IronCoreMachinePool>(plural: string): Promise<readonly T[]> {
    return (await this.#api.send<List<T>>('GET', `${GROUP}/${plural}`)).items;
  }
}

/** What a machinepoollet serves. */
export interface PoolletOptions {
  readonly api: Api;
  readonly pool: string;
  readonly namespace: string;
  /** Of its runtime. */
  readonly address: string;
}

/**
 * Serves a pool as IronCore's machinepoollet does, as far as others notice: it renews the Lease of the pool whoever has it, holds Machines
 * by the finalizer, and makes a machine for each that has none with its UID.
 */
export class Poollet extends Repeated {
  readonly #options: PoolletOptions;
  readonly #runtime: RuntimeClient;
  readonly #holder: string;

  private constructor(options: PoolletOptions) {
    super();
    this.#options = options;
    this.#holder = `${options.pool}_${randomUUID()}`;
    const address = parseDriverAddress(options.address);
    this.#runtime = new RuntimeClient({ address, clock: new SystemClock(), log: silentLogger });
  }

  static start(options: PoolletOptions): Poollet {
    const poollet = new Poollet(options);
    poollet.begin();
    return poollet;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    this.#runtime.close();
  }

  protected async round(): Promise<void> {
    const { api, pool, namespace } = this.#options;
    await this.#renew();
    const path = `${GROUP}/namespaces/${namespace}/machines`;
    const { items } = await api.send<List<IronCoreMachine>>('GET', path);
    for (const { metadata, spec } of items) {
      if (spec.machinePoolRef?.name !== pool) continue;
      const { name, uid, finalizers = [] } = metadata;
      if (!finalizers.includes(FINALIZER)) {
        await this.#merge(`${path}/${name}`, { metadata: { finalizers: [...finalizers, FINALIZER] } });
      }
      const labels = {
        'machinepoollet.ironcore.dev/machine-uid': uid,
        'machinepoollet.ironcore.dev/machine-namespace': namespace,
        'machinepoollet.ironcore.dev/machine-name': name,
      };
      const call = { signal: AbortSignal.timeout(60_000), timeoutMs: 60_000 };
      const [found] = await this.#runtime.machines(
        { labels: { 'machinepoollet.ironcore.dev/machine-uid': uid } },
        call,
      );
      if (found !== undefined) continue;
      await this.#runtime.createMachine(runtimeMachine({ labels }, { class: spec.machineClassRef.name }), call);
    }
  }

  async #renew(): Promise<void> {
    const { api, pool } = this.#options;
    const renewTime = toMicroTimestamp(new SystemClock().now());
    const spec = { holderIdentity: this.#holder, leaseDurationSeconds: 40, renewTime };
    if ((await this.#merge(`${LEASES}/${pool}`, { spec })) === 404) {
      await api.request(LEASES, { method: 'POST', body: { metadata: { name: pool }, spec } });
    }
  }

  async #merge(path: string, body: object): Promise<number> {
    const contentType = 'application/merge-patch+json';
    return (await this.#options.api.request(path, { method: 'PATCH', contentType, body })).status;
  }
}
