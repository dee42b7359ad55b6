import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';

import type { ClusterAPIMachine } from '../../pkg/worlds/cluster-api/api/machine.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { ContractSimulator, SIM_MACHINE, type SimObject } from '../contract-simulator.ts';
import { eventually } from '../expect/eventually.ts';
import { Site } from './site.ts';

const VERSION = 'cluster.x-k8s.io/v1beta2';
const PATIENCE = { timeoutMs: 120_000, intervalMs: 100 };

/**
 * A namespace with a Cluster of Cluster API whose Machines join a workload cluster of its own. Everything in it has the same name in each: its
 * Cluster is `c`, and what belongs to Machine `m` is named `m`, its Node and its provider ID included.
 */
export class ClusterAPITenant implements AsyncDisposable {
  readonly namespace = `t-${randomBytes(5).toString('hex')}`;
  readonly workload: Site;
  readonly #control: Site;
  readonly #sim: ContractSimulator;

  private constructor(control: Site, workload: Site) {
    this.#control = control;
    this.workload = workload;
    this.#sim = new ContractSimulator(control.api, this.namespace);
  }

  /** Makes all but the label of the namespace, by which it is selected. */
  static async create(control: Site): Promise<ClusterAPITenant> {
    const tenant = new ClusterAPITenant(control, await Site.drawnTarget());
    const { namespace } = tenant;
    await control.api.send('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    await tenant.setSecret('given', { value: '#cloud-config' });
    await tenant.setSecret('c-kubeconfig', { value: tenant.kubeconfig });
    await tenant.#create('clusters', 'Cluster', 'c', {
      clusterNetwork: { pods: { cidrBlocks: ['10.1.0.0/16'] } },
    });
    return tenant;
  }

  /** Of its workload cluster. */
  get kubeconfig(): string {
    return readFileSync(this.workload.kubeconfig, 'utf8');
  }

  async select(isSelected: boolean): Promise<void> {
    const labels = { cell: isSelected ? '' : null };
    await this.#control.api.send('PATCH', `/api/v1/namespaces/${this.namespace}`, { metadata: { labels } });
  }

  async setSecret(name: string, values: Readonly<Record<string, string>>): Promise<void> {
    const path = `/api/v1/namespaces/${this.namespace}/secrets`;
    const data = Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
    );
    const { status } = await this.#control.api.request(`${path}/${name}`);
    await (status === 404
      ? this.#control.api.send('POST', path, { metadata: { name }, data })
      : this.#control.api.send('PATCH', `${path}/${name}`, { data }));
  }

  async deleteSecret(name: string): Promise<void> {
    await this.#control.api.send('DELETE', `/api/v1/namespaces/${this.namespace}/secrets/${name}`);
  }

  /** A Machine with its infrastructure, which the provider says is there, and its Node. */
  async createMachine(name: string, spec: object = {}): Promise<void> {
    const providerID = `sim://${name}`;
    await this.#sim.create(SIM_MACHINE, name, { spec: { providerID } });
    await this.#sim.report(SIM_MACHINE, name, { initialization: { provisioned: true } });
    await this.#create('machines', 'Machine', name, {
      clusterName: 'c',
      bootstrap: { dataSecretName: 'given' },
      infrastructureRef: { ...SIM_MACHINE, name },
      ...spec,
    });
    await this.createNode(name);
  }

  async createNode(name: string, providerID = `sim://${name}`): Promise<void> {
    const { api } = this.workload;
    if ((await this.node(name)) !== undefined) return;
    await api.send('POST', '/api/v1/nodes', { metadata: { name }, spec: { providerID } });
    const conditions = [{ type: 'Ready', status: 'True' }];
    await api.send('PATCH', `/api/v1/nodes/${name}/status`, { status: { conditions } });
  }

  async machine(name: string): Promise<ClusterAPIMachine | undefined> {
    return await this.#control.api.find(this.#path('machines', name));
  }

  async node(name: string): Promise<Node | undefined> {
    return await this.workload.api.find(`/api/v1/nodes/${name}`);
  }

  async infrastructure(name: string): Promise<SimObject | undefined> {
    return await this.#sim.read(SIM_MACHINE, name);
  }

  async deleteMachine(name: string): Promise<void> {
    await this.#control.api.send('DELETE', this.#path('machines', name));
  }

  async untilRunning(name: string): Promise<void> {
    await this.shows(name, (machine) => machine?.status?.phase === 'Running' && machine.status.nodeRef?.name === name);
  }

  /** Until its Machine is gone, and its Node and its infrastructure with it. */
  async untilGone(name: string): Promise<void> {
    await this.shows(name, (machine) => machine === undefined);
    if ((await this.node(name)) !== undefined) throw new Error(`Node ${name} was left`);
    if ((await this.infrastructure(name)) !== undefined) throw new Error(`the infrastructure of ${name} was left`);
  }

  /** Until `holds` of a Machine. */
  async shows(name: string, holds: (machine: ClusterAPIMachine | undefined) => boolean): Promise<void> {
    let seen: ClusterAPIMachine | undefined;
    await eventually(
      async () => {
        seen = await this.machine(name);
        return holds(seen);
      },
      { ...PATIENCE, describe: () => `Machine ${name} in ${this.namespace}: ${JSON.stringify(seen)}` },
    );
  }

  async #create(plural: string, kind: string, name: string, spec: object): Promise<void> {
    const body = { apiVersion: VERSION, kind, metadata: { name, namespace: this.namespace }, spec };
    await this.#control.api.send('POST', this.#path(plural), body);
  }

  #path(plural: string, name?: string): string {
    const collection = `/apis/${VERSION}/namespaces/${this.namespace}/${plural}`;
    return name === undefined ? collection : `${collection}/${name}`;
  }

  /** Nobody manages it afterwards. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.select(false);
    await this.workload[Symbol.asyncDispose]();
  }
}
