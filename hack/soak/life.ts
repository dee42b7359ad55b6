import type { Api } from '../control-plane/api.ts';
import type { ControlClient } from '../../test/cloud/control-client.ts';

const BASE = '/apis/machine.sapcloud.io/v1alpha1/namespaces/machinist';
const DEPLOYMENT = `${BASE}/machinedeployments/soak`;
const MERGE = 'application/merge-patch+json';

/** A MachineDeployment whose machines come and go. */
export const WORKLOAD = `
apiVersion: v1
kind: Secret
metadata: { name: soak, namespace: machinist }
stringData: { userData: "token <<BOOTSTRAP_TOKEN>>" }
---
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineClass
metadata: { name: soak, namespace: machinist }
provider: sim
providerSpec: {}
secretRef: { name: soak, namespace: machinist }
---
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: { name: soak, namespace: machinist }
spec:
  replicas: 0
  selector: { matchLabels: { app: soak } }
  strategy: { type: RollingUpdate, rollingUpdate: { maxSurge: 3, maxUnavailable: 3 } }
  template:
    metadata: { labels: { app: soak } }
    spec: { class: { kind: MachineClass, name: soak } }
`;

interface MachineItem {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly providerID?: string };
  readonly status?: { readonly currentStatus?: { readonly phase?: string } };
}

/** What users and the provider do to a pool. */
export class Life {
  readonly #api: Api;
  readonly #cloud: ControlClient;
  readonly #random: () => number;
  #replicas = 0;
  #generation = 0;

  /** `random` is uniform in [0, 1). */
  constructor(api: Api, cloud: ControlClient, random: () => number) {
    this.#api = api;
    this.#cloud = cloud;
    this.#random = random;
  }

  /** Does one thing to the pool, by chance, and returns what. */
  async act(most: number): Promise<string> {
    const dice = this.#random();
    if (dice < 0.45) return this.#scale(Math.floor(this.#random() * (most + 1)));
    if (dice < 0.6) return this.#roll();
    if (dice < 0.75) return this.#vanish();
    return this.#deleteMachine();
  }

  /** Why the pool is not what was asked for; undefined when it is, exactly: an event that was missed would show here forever. */
  async difference(): Promise<string | undefined> {
    const machines = await this.#machines();
    const vms = await this.#cloud.vms();
    const ids = (items: readonly (string | undefined)[]): string => items.map(String).toSorted().join(' ');
    const phases = new Set(machines.map(({ status }) => status?.currentStatus?.phase));
    if (machines.length !== this.#replicas) return `${machines.length} machines, ${this.#replicas} wanted`;
    if (machines.length > 0 && (phases.size !== 1 || !phases.has('Running'))) return `phases ${[...phases].join(', ')}`;
    if (machines.some(({ metadata }) => metadata.deletionTimestamp !== undefined)) return 'deletions under way';
    if (ids(machines.map(({ spec }) => spec.providerID)) !== ids(vms.map(({ providerID }) => providerID))) {
      return `${vms.length} VMs for ${machines.length} machines, or others`;
    }
    const nodes = ((await this.#api.request('/api/v1/nodes')).body as { items: readonly unknown[] }).items;
    return nodes.length === machines.length ? undefined : `${nodes.length} Nodes for ${machines.length} machines`;
  }

  async #scale(replicas: number): Promise<string> {
    this.#replicas = replicas;
    await this.#patch({ spec: { replicas } });
    return `scaled to ${replicas}`;
  }

  async #roll(): Promise<string> {
    const generation = String(++this.#generation);
    await this.#patch({ spec: { template: { metadata: { annotations: { generation } } } } });
    return 'rolled';
  }

  async #vanish(): Promise<string> {
    const vm = this.#pick(await this.#cloud.vms());
    if (vm === undefined) return 'found no VM to lose';
    // It may go by itself in this moment.
    await this.#cloud.vanish(vm.providerID).catch(() => undefined);
    return 'lost a VM';
  }

  async #deleteMachine(): Promise<string> {
    const machine = this.#pick(await this.#machines());
    if (machine === undefined) return 'found no machine to delete';
    await this.#api.request(`${BASE}/machines/${machine.metadata.name}`, { method: 'DELETE' });
    return 'deleted a machine';
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.#random() * items.length)];
  }

  async #machines(): Promise<readonly MachineItem[]> {
    return ((await this.#api.request(`${BASE}/machines`)).body as { items: MachineItem[] }).items;
  }

  async #patch(body: unknown): Promise<void> {
    const { status } = await this.#api.request(DEPLOYMENT, { method: 'PATCH', contentType: MERGE, body });
    if (status !== 200) throw new Error(`patching the deployment: ${status}`);
  }
}
