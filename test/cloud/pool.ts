import { randomBytes } from 'node:crypto';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests } from '../../hack/control-plane/apply.ts';
import type { Manifest } from '../../hack/control-plane/apply.ts';
import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import { MACHINE_FINALIZER, NODE_LABEL } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Lease, Node, Secret } from '../../pkg/apis/wire.ts';
import { canonicalIDOf, type SimVM } from '../../packages/providers/sim/vm.ts';
import { eventually } from '../expect/eventually.ts';
import { grant } from '../integration/shipped-roles.ts';
import type { Site } from './site.ts';

const PLACEHOLDER = '<<BOOTSTRAP_TOKEN>>';
const NAME = 'pool';
const LEASES = ['machine-controller', 'machine-controller-manager'];
const GROUP = '/apis/machine.sapcloud.io/v1alpha1';

/** The provider's console. */
export interface CloudConsole {
  /** Of its driver, as `--driver sim=…` takes it. */
  readonly address: string;
  /** VMs that exist now. */
  vms(): Promise<readonly SimVM[]>;
}

/** How a pool is made. */
export interface PoolOptions {
  readonly site: Site;
  readonly cloud: CloudConsole;
  readonly replicas: number;
  /** Where the machines become Nodes, if not at the site. */
  readonly target?: Site;
  /** What the manager may do in its namespace; `control` unless told otherwise. */
  readonly roles?: 'control' | 'cell' | 'none';
  /** Name of the provider; `sim` unless told otherwise. */
  readonly provider?: string;
  readonly maxSurge?: number | string;
  readonly maxUnavailable?: number | string;
  /** Further fields of the machines' spec, such as timeouts. */
  readonly machine?: Readonly<Record<string, unknown>>;
}

/** How long waits take at most. */
export interface Patience {
  readonly timeoutMs: number;
}

/** Looks cost the server more than what is looked at. */
const LOOK_MS = 200;
const PATIENCE: Patience = { timeoutMs: 480_000 };

/**
 * One MachineDeployment with its class and Secret, in a namespace of its own, as a user sees it: through the API server and
 * the provider's console. Knows nothing of the manager.
 */
export class Pool implements AsyncDisposable {
  readonly namespace: string;
  readonly cloud: CloudConsole;
  /** Of the manager's user, who has the shipped permissions. */
  readonly kubeconfig: string;
  readonly #api: Api;
  readonly #target: Api;

  private constructor(namespace: string, { cloud, site, target = site }: PoolOptions) {
    this.namespace = namespace;
    this.cloud = cloud;
    this.kubeconfig = site.kubeconfig;
    this.#api = site.api;
    this.#target = target.api;
  }

  /** Creates the objects. */
  static async create(options: PoolOptions): Promise<Pool> {
    const { roles = 'control', site } = options;
    const { api } = site;
    const namespace = `t-${randomBytes(5).toString('hex')}`;
    const pool = new Pool(namespace, options);
    await api.send('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    if (roles !== 'none') await grant(api, roles, namespace);
    await applyManifests(api, manifestsOf(namespace, options));
    return pool;
  }

  /** What a manager of this pool is told. */
  get access(): { readonly kubeconfig: string; readonly namespace: string; readonly driver: string } {
    return { kubeconfig: this.kubeconfig, namespace: this.namespace, driver: this.cloud.address };
  }

  /** Of VMs that are planted: as if one of its machines had them. */
  get identity(): { readonly namespace: string; readonly className: string; readonly zone: string } {
    return { namespace: this.namespace, className: NAME, zone: this.namespace };
  }

  async scale(replicas: number): Promise<void> {
    await this.#patchDeployment({ spec: { replicas } });
  }

  /** Changes the template, so that every machine has to be replaced, and how. */
  async roll(generation: string, rollingUpdate: unknown = {}): Promise<void> {
    const template = { metadata: { annotations: { generation } } };
    await this.#patchDeployment({ spec: { template, strategy: { rollingUpdate } } });
  }

  /** Changes the spec of the MachineDeployment, by a merge patch. */
  async change(spec: Readonly<Record<string, unknown>>): Promise<void> {
    await this.#patchDeployment({ spec });
  }

  /** Annotates the MachineClass; null takes an annotation away. */
  async annotateClass(annotations: Readonly<Record<string, string | null>>): Promise<void> {
    await this.#api.send('PATCH', `${this.#machinePath('machineclasses')}/${NAME}`, { metadata: { annotations } });
  }

  /** Annotations of the MachineClass. */
  async classAnnotations(): Promise<Readonly<Record<string, string>>> {
    const { metadata } = await this.machineClass();
    return metadata.annotations ?? {};
  }

  /** The MachineClass, or another one of the namespace. */
  async machineClass(name = NAME): Promise<KubeObject> {
    return await this.#api.send<KubeObject>('GET', `${this.#machinePath('machineclasses')}/${name}`);
  }

  /** Changes the content of the MachineClass, by a merge patch; resolves with its new generation. */
  async changeClass(content: Readonly<Record<string, unknown>>): Promise<number | undefined> {
    const path = `${this.#machinePath('machineclasses')}/${NAME}`;
    return (await this.#api.send<KubeObject>('PATCH', path, content)).metadata.generation;
  }

  /** Makes another MachineClass, of another zone, with the same Secret. */
  async addClass(name: string): Promise<void> {
    await this.#api.send('POST', this.#machinePath('machineclasses'), {
      apiVersion: API_VERSION,
      kind: 'MachineClass',
      metadata: { name },
      provider: 'sim',
      providerSpec: { zone: `${this.namespace}-${name}` },
      secretRef: { name: NAME, namespace: this.namespace },
    });
  }

  /** Names another class in `spec.class` of a machine. */
  async switchClass(machine: string, className: string): Promise<void> {
    const path = `${this.#machinePath('machines')}/${machine}`;
    await this.#api.send('PATCH', path, { spec: { class: { name: className } } });
  }

  /** Asks for the deletion of a MachineClass. */
  async deleteClass(name: string): Promise<void> {
    await this.#api.send('DELETE', `${this.#machinePath('machineclasses')}/${name}`);
  }

  /** Asks for the deletion of the MachineDeployment, its class and its Secret. */
  async delete(): Promise<void> {
    await this.#api.send('DELETE', `${this.#machinePath('machinedeployments')}/${NAME}`);
    await this.#api.send('DELETE', `${this.#machinePath('machineclasses')}/${NAME}`);
    await this.#api.send('DELETE', `${this.#secretPath}/${NAME}`);
  }

  /** Asks for the deletion of one machine. */
  async deleteMachine(name: string): Promise<void> {
    await this.#api.send('DELETE', `${this.#machinePath('machines')}/${name}`);
  }

  /** Makes a machine that no MachineSet owns; resolves with its name, which is its Node's too, when it runs. */
  async addMachine(spec: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const name = await this.postMachine(spec);
    let seen: Machine | undefined;
    const isRunning = async (): Promise<boolean> => {
      seen = await this.machine(name);
      return phaseOf(seen) === 'Running';
    };
    await eventually(isRunning, {
      ...PATIENCE,
      intervalMs: LOOK_MS,
      describe: () => `machine ${name} to run, now ${JSON.stringify(seen)}`,
    });
    return name;
  }

  /** Asks for a machine that no MachineSet owns; resolves with its name. */
  async postMachine(
    spec: Readonly<Record<string, unknown>> = {},
    name = `${this.namespace}-${randomBytes(2).toString('hex')}`,
  ): Promise<string> {
    await this.#api.send('POST', this.#machinePath('machines'), {
      apiVersion: API_VERSION,
      kind: 'Machine',
      metadata: { name, finalizers: [MACHINE_FINALIZER] },
      spec: { class: { kind: 'MachineClass', name: NAME }, ...spec },
    });
    return name;
  }

  /** One machine as it is now. */
  async machine(name: string): Promise<Machine> {
    return await this.#api.send<Machine>('GET', `${this.#machinePath('machines')}/${name}`);
  }

  /** Waits until no machine, VM, Node or token is left; the class and its Secret stay. */
  async untilEmpty({ timeoutMs }: Patience = PATIENCE): Promise<void> {
    await eventually(() => this.#empty(), {
      timeoutMs,
      intervalMs: LOOK_MS,
      describe: `no machine in ${this.namespace}`,
    });
  }

  /** Labels one machine. */
  async label(name: string, labels: Readonly<Record<string, string>>): Promise<void> {
    await this.#api.send('PATCH', `${this.#machinePath('machines')}/${name}`, { metadata: { labels } });
  }

  /** Annotates one machine; null takes an annotation away. */
  async annotate(name: string, annotations: Readonly<Record<string, string | null>>): Promise<void> {
    await this.#api.send('PATCH', `${this.#machinePath('machines')}/${name}`, { metadata: { annotations } });
  }

  async machines(): Promise<readonly Machine[]> {
    return await this.#list<Machine>(this.#machinePath('machines'));
  }

  async deployment(): Promise<MachineDeployment> {
    return await this.#api.send<MachineDeployment>('GET', `${this.#machinePath('machinedeployments')}/${NAME}`);
  }

  /** Who holds each of the Leases; empty while nobody ever did. */
  async leaders(): Promise<readonly string[]> {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${this.namespace}/leases`;
    const leases = await this.#list<Lease>(path);
    return LEASES.map((name) => leases.find(({ metadata }) => metadata.name === name)?.spec?.holderIdentity ?? '');
  }

  /** Nodes of machines of this pool. */
  async nodes(): Promise<readonly Node[]> {
    const own = `sim:///${this.namespace}/`;
    const all = await this.#list<Node>('/api/v1/nodes', this.#target);
    return all.filter(({ spec }) => canonicalIDOf(spec?.providerID ?? '').startsWith(own));
  }

  /** Names of bootstrap tokens of machines of this pool. */
  async tokens(): Promise<readonly string[]> {
    const secrets = await this.#list<Secret>(
      '/api/v1/namespaces/kube-system/secrets?fieldSelector=type=bootstrap.kubernetes.io/token',
      this.#target,
    );
    const own = `for machine ${this.namespace}/`;
    return secrets
      .filter(({ data }) => Buffer.from(data?.['description'] ?? '', 'base64').includes(own))
      .map(({ metadata }) => metadata.name);
  }

  /** Changes labels of an object, which means nothing to anybody. */
  async touch(kind: 'machines' | 'nodes', name: string, value: string): Promise<void> {
    const path = kind === 'nodes' ? '/api/v1/nodes' : this.#machinePath('machines');
    await this.#api.send('PATCH', `${path}/${name}`, { metadata: { labels: { touched: value } } });
  }

  /** Waits until the pool is what was asked for, and nothing else is there. Resolves with the names of its machines. */
  async untilUp(replicas: number, { timeoutMs }: Patience = PATIENCE): Promise<readonly string[]> {
    return await eventually(() => this.#up(replicas), {
      timeoutMs,
      intervalMs: LOOK_MS,
      describe: `${replicas} machines in ${this.namespace}`,
    });
  }

  /** Waits until there are so many Machine objects, whatever they have come to. */
  async untilAsked(replicas: number): Promise<void> {
    await eventually(async () => (await this.machines()).length === replicas, { ...PATIENCE, intervalMs: LOOK_MS });
  }

  /** Waits until nothing is left of the deleted pool, anywhere. */
  async untilGone({ timeoutMs }: Patience = PATIENCE): Promise<void> {
    await eventually(() => this.#gone(), {
      timeoutMs,
      intervalMs: LOOK_MS,
      describe: `nothing to be left of ${this.namespace}`,
    });
  }

  /** Does not wait for the namespace to go. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#api.request(`/api/v1/namespaces/${this.namespace}`, { method: 'DELETE' });
  }

  async #up(replicas: number): Promise<readonly string[]> {
    // Asking the cloud costs the server nothing, and tells most often that it is too early.
    same('number of VMs', (await this.cloud.vms()).length, replicas);
    const { metadata, status = {} } = await this.deployment();
    const counted = [status.replicas, status.updatedReplicas, status.availableReplicas].map((n) => n ?? 0);
    same('replicas, updated and available', counted, [replicas, replicas, replicas]);
    same('observed generation', status.observedGeneration, metadata.generation);
    const machines = await this.machines();
    const names = machines.map((machine) => machine.metadata.name).toSorted();
    const phases = machines.map((machine) => machine.status?.currentStatus?.phase);
    same(
      'phases',
      phases,
      Array.from({ length: replicas }, () => 'Running'),
    );
    same(
      'deletions',
      machines.filter(({ metadata: { deletionTimestamp } }) => deletionTimestamp !== undefined),
      [],
    );
    same(
      'VMs',
      sorted(await this.cloud.vms(), ({ providerID }) => providerID),
      sorted(machines, providerIDOf),
    );
    const nodes = await this.nodes();
    same(
      'Nodes',
      sorted(nodes, ({ metadata: { name } }) => name),
      sorted(machines, nodeNameOf),
    );
    same('tokens', await this.tokens(), []);
    return names;
  }

  async #gone(): Promise<void> {
    await this.#empty();
    for (const plural of ['machinesets', 'machinedeployments', 'machineclasses']) {
      same(plural, (await this.#list(this.#machinePath(plural))).map(describe), []);
    }
    same('Secrets', (await this.#list(this.#secretPath)).map(describe), []);
  }

  async #empty(): Promise<void> {
    same(
      'VMs',
      sorted(await this.cloud.vms(), ({ machineName }) => machineName),
      [],
    );
    same('machines', (await this.machines()).map(describe), []);
    same('Nodes', (await this.nodes()).map(describe), []);
    same('tokens', await this.tokens(), []);
  }

  get #secretPath(): string {
    return `/api/v1/namespaces/${this.namespace}/secrets`;
  }

  #machinePath(plural: string): string {
    return `${GROUP}/namespaces/${this.namespace}/${plural}`;
  }

  async #patchDeployment(body: unknown): Promise<void> {
    await this.#api.send('PATCH', `${this.#machinePath('machinedeployments')}/${NAME}`, body);
  }

  async #list<T extends KubeObject>(path: string, api = this.#api): Promise<readonly T[]> {
    return (await api.send<{ items: T[] }>('GET', path)).items;
  }
}

function same(what: string, actual: unknown, wanted: unknown): void {
  const [is, should] = [JSON.stringify(actual), JSON.stringify(wanted)];
  if (is !== should) throw new Error(`${what}: ${is}, wanted ${should}`);
}

function sorted<T>(items: readonly T[], text: (item: T) => string | undefined): string[] {
  return items.map((item) => text(item) ?? '').toSorted();
}

function phaseOf({ status }: Machine): string | undefined {
  return status?.currentStatus?.phase;
}

function providerIDOf({ spec }: Machine): string | undefined {
  return spec.providerID;
}

function nodeNameOf({ metadata }: Machine): string | undefined {
  return metadata.labels?.[NODE_LABEL];
}

/** An object that should not be there: what holds it and how far its deletion came. */
function describe(object: KubeObject): unknown {
  const { name, finalizers, deletionTimestamp } = object.metadata;
  const { lastOperation } = (object as Partial<Machine>).status ?? {};
  return { name, finalizers, deletionTimestamp, lastOperation };
}

function manifestsOf(namespace: string, options: PoolOptions): Manifest[] {
  const { replicas, maxSurge = 1, maxUnavailable = 0, machine = {}, provider = 'sim' } = options;
  const metadata = { name: NAME, namespace };
  const labels = { pool: namespace };
  return [
    { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', stringData: { userData: `token: ${PLACEHOLDER}` } },
    {
      apiVersion: API_VERSION,
      kind: 'MachineClass',
      metadata,
      provider,
      // Provider ids begin with the zone, so that pools on one API server never share one.
      providerSpec: { zone: namespace },
      secretRef: metadata,
    },
    {
      apiVersion: API_VERSION,
      kind: 'MachineDeployment',
      metadata,
      spec: {
        replicas,
        selector: { matchLabels: labels },
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } },
        template: {
          metadata: { labels },
          spec: { class: { kind: 'MachineClass', name: NAME }, ...machine },
        },
      },
    },
  ];
}
