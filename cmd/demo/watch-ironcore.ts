import { setTimeout as sleep } from 'node:timers/promises';

import type { Api } from '../../hack/control-plane/api.ts';
import { COMPUTE_GROUP, IRONCORE_VERSION, STORAGE_GROUP } from '../../pkg/worlds/ironcore/api/group.ts';
import type { IronCoreMachine } from '../../pkg/worlds/ironcore/api/machine.ts';
import { readyCondition, type IronCoreMachinePool } from '../../pkg/worlds/ironcore/api/machine-pool.ts';
import type { List } from '../../pkg/apis/meta.ts';
import { explainIronCoreMachine } from '../../pkg/worlds/ironcore/controllers/explain.ts';
import { NAMESPACE } from './manifests.ts';

const PAUSE_MS = 300;
const COMPUTE = `/apis/${COMPUTE_GROUP}/${IRONCORE_VERSION}`;
const MACHINES = `${COMPUTE}/namespaces/${NAMESPACE}/machines`;
const VOLUMES = `/apis/${STORAGE_GROUP}/${IRONCORE_VERSION}/namespaces/${NAMESPACE}/volumes`;

/** Plays the provider of Volumes: these can be attached from now on. */
export async function provideVolumes(api: Api, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const access = { driver: 'demo', handle: name };
    await api.send('PATCH', `${VOLUMES}/${name}/status`, { status: { state: 'Available', access } });
  }
}

type Seen = readonly [machines: readonly IronCoreMachine[], pools: readonly IronCoreMachinePool[]];

/** Looks at the pools and Machines of IronCore, and tells of each change that it sees. */
export class IronCoreWatch {
  readonly #api: Api;
  readonly #report: (name: string, what: string) => void;
  #reported = new Map<string, string>();

  constructor(api: Api, tell: (name: string, what: string) => void) {
    this.#api = api;
    this.#report = tell;
  }

  /** Resolves when `isDone` says so of the Machines and pools that are there. Rejects with the signal's reason. */
  async until(isDone: (...seen: Seen) => boolean, signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      // An API server that is away is asked again.
      const seen = await this.#check().catch(() => undefined);
      if (seen !== undefined && isDone(...seen)) return;
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #check(): Promise<Seen> {
    const pools = await this.#api.send<List<IronCoreMachinePool>>('GET', `${COMPUTE}/machinepools`);
    const machines = await this.#api.send<List<IronCoreMachine>>('GET', MACHINES);
    const lines = new Map([
      ...pools.items.map((pool) => [`pool ${pool.metadata.name}`, poolLine(pool)] as const),
      ...machines.items.map((machine) => [machine.metadata.name, machineLine(machine, pools.items)] as const),
    ]);
    for (const name of this.#reported.keys()) if (!lines.has(name)) this.#report(name, 'Gone');
    for (const [name, line] of lines) if (this.#reported.get(name) !== line) this.#report(name, line);
    this.#reported = lines;
    return [machines.items, pools.items];
  }
}

/** Whether exactly `wanted` Machines exist, and all are Running with all that they want attached. */
export function areRunning(machines: readonly IronCoreMachine[], wanted: number): boolean {
  return (
    machines.length === wanted &&
    machines.every(
      ({ status }) => status?.state === 'Running' && status.conditions?.every((one) => one.status === 'True'),
    )
  );
}

/** Whether each pool can be used, or none can. */
export function arePools(pools: readonly IronCoreMachinePool[], ready: 'True' | 'False'): boolean {
  return pools.length > 0 && pools.every((pool) => readyCondition(pool)?.status === ready);
}

function poolLine(pool: IronCoreMachinePool): string {
  const { reason = '', message = '' } = readyCondition(pool) ?? {};
  return `${(pool.status?.state ?? 'New').padEnd(16)} ${[reason, message].filter((part) => part !== '').join(': ')}`;
}

/** The sentence must not change by itself as time passes, so it is explained as of no particular moment. */
function machineLine(machine: IronCoreMachine, pools: readonly IronCoreMachinePool[]): string {
  const pool = pools.find(({ metadata }) => metadata.name === machine.spec.machinePoolRef?.name);
  const { reason, message } = explainIronCoreMachine(machine, pool ?? 'unknown', 0);
  const attached = (machine.status?.volumes ?? []).filter(({ state }) => state === 'Attached').map(({ name }) => name);
  return `${reason.padEnd(16)} ${message}${attached.length === 0 ? '' : ` Attached: ${attached.join(', ')}.`}`;
}
