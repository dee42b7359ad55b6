import { deepEqual } from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, parseManifests } from '../../hack/control-plane/apply.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { connect, namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import type { NewDriver } from './new-driver.ts';

const PATIENCE = { timeoutMs: 120_000, intervalMs: 100 };
/** All but those that look at every Node: others share the cluster. */
const CONTROLLERS = 'machine-deployment,machine-set,machine,machine-class,secret,safety.orphan-vms';
const GROUP = '/apis/machine.sapcloud.io/v1alpha1';

/** The MachineDeployment that comes with a new driver, with a manager that calls this driver. */
export class DriverFleet implements AsyncDisposable {
  readonly #driver: NewDriver;
  readonly #name: string;
  readonly #namespace: string;
  readonly #api: Api;
  readonly #stack: AsyncDisposableStack;

  private constructor(
    driver: NewDriver,
    { name, namespace: own, api, stack }: { name: string; namespace: string; api: Api; stack: AsyncDisposableStack },
  ) {
    this.#driver = driver;
    this.#name = name;
    this.#namespace = own;
    this.#api = api;
    this.#stack = stack;
  }

  /** Applies what is in the folder of the driver called `name`, and starts a manager, with these flags besides. */
  static async start(
    driver: NewDriver,
    name: string,
    folder: string,
    flags: Readonly<Record<string, string>> = {},
  ): Promise<DriverFleet> {
    const stack = new AsyncDisposableStack();
    const own = stack.use(await namespace()).name;
    const connection = connect();
    const api = connection.api();
    stack.defer(() => api.close());
    const objects = ['deployment.yaml', 'proof/class.yaml', 'proof/secret.yaml'].flatMap((file) =>
      parseManifests(
        readFileSync(path.join(folder, file), 'utf8').replaceAll('namespace: default', `namespace: ${own}`),
      ),
    );
    await applyManifests(api, objects);
    stack.use(
      await InProcessManager.start({
        kubeconfig: await connection.kubeconfigFor({ user: 'admin', groups: ['system:masters'] }),
        namespace: own,
        flags: { driver: `${name}=unix://${driver.socket}`, controllers: CONTROLLERS, ...flags },
      }),
    );
    return new DriverFleet(driver, { name, namespace: own, api, stack });
  }

  /** Until there are so many Machines, each with a VM of its own, and no VM besides. */
  async settled(count: number): Promise<void> {
    await eventually(async () => {
      const { items } = await this.#api.send<{ items: readonly Machine[] }>('GET', this.#path('machines'));
      const ids = items.map(({ spec }) => spec.providerID ?? '').toSorted();
      deepEqual(ids.length, count);
      deepEqual(await this.#driver.vms(), ids);
    }, PATIENCE);
  }

  async scale(replicas: number): Promise<void> {
    await this.#api.send('PATCH', this.#path('machinedeployments', this.#name), { spec: { replicas } });
  }

  /** Deletes the MachineDeployment and its class; resolves when both are gone, with all Machines and VMs. */
  async remove(): Promise<void> {
    for (const one of ['machinedeployments', 'machineclasses']) {
      await this.#api.send('DELETE', this.#path(one, this.#name));
    }
    await this.settled(0);
    const ofClass = this.#path('machineclasses', this.#name);
    await eventually(async () => (await this.#api.request(ofClass)).status === 404, PATIENCE);
  }

  #path(resource: string, name = ''): string {
    return `${GROUP}/namespaces/${this.#namespace}/${resource}/${name}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}
