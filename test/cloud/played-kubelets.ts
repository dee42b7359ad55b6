import { setTimeout as sleep } from 'node:timers/promises';

import type { Api } from '../../hack/control-plane/api.ts';
import { isBeingDeleted } from '../../pkg/apis/meta.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { NODE_LABEL } from '../../pkg/apis/machine/v1alpha1/labels.ts';

const LOOK_MS = 500;

/** Plays the kubelets of machines whose VMs boot nothing: their Nodes join, once, and are ready until somebody says otherwise. */
export class PlayedKubelets implements AsyncDisposable {
  readonly #api: Api;
  readonly #machines: () => Promise<readonly Machine[]>;
  readonly #joined = new Set<string>();
  readonly #end = new AbortController();
  readonly #ended: Promise<void>;

  constructor(api: Api, machines: () => Promise<readonly Machine[]>) {
    this.#api = api;
    this.#machines = machines;
    this.#ended = this.#play();
    this.#ended.catch(() => undefined); // thrown when it is disposed
  }

  /** What the control plane makes of a kubelet that has not been heard of. */
  async lose(name: string): Promise<void> {
    await this.#setReady(name, 'Unknown');
  }

  async #play(): Promise<void> {
    const { signal } = this.#end;
    while (!signal.aborted) {
      for (const machine of await this.#machines()) await this.#join(machine);
      await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #join(machine: Machine): Promise<void> {
    const name = machine.metadata.labels?.[NODE_LABEL];
    if (name === undefined || isBeingDeleted(machine) || this.#joined.has(name)) return;
    this.#joined.add(name);
    await this.#api.send('POST', '/api/v1/nodes', {
      metadata: { name },
      spec: { providerID: machine.spec.providerID },
    });
    await this.#setReady(name, 'True');
  }

  async #setReady(name: string, status: 'True' | 'Unknown'): Promise<void> {
    const reason = status === 'True' ? 'KubeletReady' : 'NodeStatusUnknown';
    const change = { conditions: [{ type: 'Ready', status, reason }] };
    await this.#api.send('PATCH', `/api/v1/nodes/${name}/status`, { status: change });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#ended;
  }
}
