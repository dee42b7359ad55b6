import { setTimeout as sleep } from 'node:timers/promises';

import type { Api } from '../../hack/control-plane/api.ts';
import type { IronCoreMachine } from '../../pkg/worlds/ironcore/api/machine.ts';

const LOOK_MS = 100;

/** How the pool behaves; every member may be changed while it runs. */
export interface PoolBehaviour {
  /** Whether it takes Machines that have no pool. */
  takes: boolean;
  /** State of those that it has. */
  state: string;
  /** Whether they become Nodes. */
  joins: boolean;
}

/** In the place of what is paid for: IronCore's scheduler, a pool whose machines run at once, and their kubelets. */
export class TestPool implements AsyncDisposable {
  readonly behaviour: PoolBehaviour = { takes: true, state: 'Running', joins: false };
  readonly #api: Api;
  readonly #path: string;
  readonly #nodes = new Set<string>();
  #isOpen = true;
  readonly #ended: Promise<void>;

  constructor(api: Api, namespace: string) {
    this.#api = api;
    this.#path = `/apis/compute.ironcore.dev/v1alpha1/namespaces/${namespace}/machines`;
    this.#ended = this.#run();
  }

  /** All Machines that there are. */
  async machines(): Promise<readonly IronCoreMachine[]> {
    return (await this.#api.send<{ items: IronCoreMachine[] }>('GET', this.#path)).items;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOpen = false;
    await this.#ended;
  }

  async #run(): Promise<void> {
    while (this.#isOpen) {
      for (const machine of await this.machines()) await this.#serve(machine);
      await sleep(LOOK_MS);
    }
  }

  /** A Machine may go at any moment, so that what is refused does not matter. */
  async #serve({ metadata: { name, namespace, deletionTimestamp }, spec, status }: IronCoreMachine): Promise<void> {
    const { takes, state, joins } = this.behaviour;
    const path = `${this.#path}/${name}`;
    if (deletionTimestamp !== undefined) return;
    if (spec.machinePoolRef === undefined) {
      if (takes) await this.#patch(path, { spec: { machinePoolRef: { name: 'pool' } } });
      return;
    }
    if (status?.state !== state) await this.#patch(`${path}/status`, { status: { state } });
    if (!joins || state !== 'Running' || this.#nodes.has(name)) return;
    this.#nodes.add(name);
    const providerID = `ironcore://${namespace}/${name}`;
    await this.#api.request('/api/v1/nodes', { method: 'POST', body: { metadata: { name }, spec: { providerID } } });
    const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }];
    await this.#patch(`/api/v1/nodes/${name}/status`, { status: { conditions } });
  }

  async #patch(path: string, body: object): Promise<void> {
    await this.#api.request(path, { method: 'PATCH', contentType: 'application/merge-patch+json', body });
  }
}
