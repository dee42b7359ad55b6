import { join } from 'node:path';

import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../../pkg/apis/machine/v1alpha1/machine-set.ts';
import type {
  MachineDeployment,
  MachineDeploymentStrategy,
} from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { Lease, Node } from '../../../pkg/apis/wire.ts';
import { Simulation } from '../../../packages/providers/sim/simulation.ts';
import type { ServedWorld } from '../../../pkg/controllers/world.ts';
import { silentLogger } from '../../../pkg/base/log/logger.ts';
import { charactersOf, type Random, uuidOf } from '../../../pkg/base/random/random.ts';
import { SimulatedAPIServer } from '../api-server/api-server.ts';
import type { Backup } from '../api-server/objects.ts';
import { type Kind, kindsWith } from '../api-server/kinds.ts';
import type { StoredObject } from '../api-server/stored-object.ts';
import { collectGarbage } from './garbage-collector.ts';
import { SimulatedConnection } from './network.ts';
import { type Caller, type ClusterName, endpointOf, Processes, type Servers } from './processes.ts';
import { integerIn, seededRandom } from './seeded-random.ts';
import type { Flags } from './simulated-process.ts';
import { Trace } from './trace.ts';
import { cleanTokens } from './token-cleaner.ts';
import { VirtualClock, VirtualTime } from './virtual-clock.ts';
import { SeededWeather } from './weather.ts';
import { Workload, type WorkloadOptions } from './workload.ts';

/** What a world is made from; of equal ones, the same becomes. */
export interface MachinesWorldOptions {
  readonly seed: number;
  /** Whether the Nodes are in a cluster of their own. */
  readonly hasTarget?: boolean;
  readonly replicas?: number;
  /** Pods on its Nodes, how many of them may be missing, and how many have a volume; none without. */
  readonly pods?: Pick<WorkloadOptions, 'replicas' | 'maxUnavailable' | 'volumes'> | undefined;
  /** How long the provider takes for some calls, and a Node to join. */
  readonly latencyMs?: Partial<typeof LATENCIES>;
  /** The provider says nothing that is not true, and nobody looks for VMs without a Machine: there are none. */
  readonly isHonest?: boolean;
  /** How the pool is rolled at first: machine by machine, unless it is given. */
  readonly strategy?: MachineDeploymentStrategy | undefined;
  /** Annotations of its MachineDeployment. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  /** Nodes register with provider ids of another form than the driver's. */
  readonly otherNodeIDs?: boolean;
  /** Whether the driver makes no second VM for the same Machine. */
  readonly idempotentCreate?: boolean;
  /** Flags of its processes beside those that the world needs. */
  readonly flags?: Flags;
  /** Kinds that its servers have beside those of the project and those built in. */
  readonly kinds?: readonly Kind[];
  /** Puts what else there is into it, before the first process starts; a pool unless it is given. */
  readonly furnish?: ((world: MachinesWorld) => void) | undefined;
  /** What the simulated cloud takes in place of the provider spec of a class; the same, unless it is given. */
  readonly simulatedSpec?: (providerSpec: unknown) => unknown;
  /** In place of all that a process serves, where some is reached in another way here. */
  readonly worlds?: ((world: MachinesWorld, caller: Caller) => readonly ServedWorld[]) | undefined;
  readonly keepsTrace?: boolean;
  /** Wall time of its beginning; the first moment of 2026 unless it is given. */
  readonly epochMs?: number | undefined;
}

/** Where all namespaced objects of the world are. */
export const NAMESPACE = 'pools';
/** Name of its MachineDeployment, MachineClass and Secret. */
export const POOL = 'pool';
const GROUP = '/apis/machine.sapcloud.io/v1alpha1';
const KINDS = kindsWith(join(import.meta.dirname, '../../../crds'));
const SUFFIXES = 'bcdfghjklmnpqrstvwxz2456789';
const LATENCIES = { create: 30_000, initialize: 1_000, status: 200, delete: 15_000, list: 500, join: 45_000 };
/** After it the node lifecycle controller calls a Node Unknown that is not heard of. */
const NODE_UNKNOWN_MS = 45_000;
/** How long cloud controllers take to notice that a VM is gone. */
const CLOUD_CONTROLLER_MS = 60_000;
const MERGE_PATCH = 'application/merge-patch+json';

/**
 * A pool of machines in a world of its own: API servers in memory, the simulated cloud with the kubelets of its VMs, and processes of the
 * program. Time, randomness and the order of what happens are the seed's.
 */
export class MachinesWorld implements AsyncDisposable {
  readonly time: VirtualTime;
  readonly trace: Trace;
  /** Of the processes' ways to the API servers; that of the kubelets is always fine. */
  readonly weather: SeededWeather;
  readonly servers: Servers;
  /** The program. */
  readonly processes: Processes;
  /** UIDs of Machines that had VMs and were forgotten when the control cluster was set back. */
  forgotten: ReadonlySet<string> = new Set();
  /** Whether any Machines were forgotten then, also such as were just being created. */
  hasForgotten = false;
  #cloud: Simulation | undefined;
  readonly #options: Required<MachinesWorldOptions>;
  #workload: Workload | undefined;

  private constructor(options: MachinesWorldOptions) {
    this.#options = {
      hasTarget: false,
      replicas: 4,
      pods: undefined,
      latencyMs: {},
      isHonest: false,
      strategy: undefined,
      annotations: undefined,
      otherNodeIDs: false,
      idempotentCreate: true,
      flags: {},
      kinds: [],
      furnish: undefined,
      simulatedSpec: (providerSpec) => providerSpec,
      worlds: undefined,
      keepsTrace: false,
      epochMs: undefined,
      ...options,
    };
    const { seed, hasTarget, keepsTrace, epochMs } = this.#options;
    this.time = new VirtualTime(seededRandom(seed, 'order'), epochMs);
    this.trace = new Trace(() => this.time.elapsedMs, { keepsAll: keepsTrace });
    this.weather = new SeededWeather(seededRandom(seed, 'weather'), seededRandom(seed, 'forbidden'));
    const control = this.#server(seededRandom(seed, 'control cluster'));
    this.servers = { control, target: hasTarget ? this.#server(seededRandom(seed, 'target cluster')) : control };
    const { time, trace, weather, servers } = this;
    const { worlds, simulatedSpec } = this.#options;
    this.processes = new Processes({
      seed,
      time,
      trace,
      weather,
      servers,
      flags: this.#flags(),
      simulation: () => this.simulation,
      simulatedSpec,
      holders: () =>
        new Set((this.#list('control', 'leases') as readonly Lease[]).map(({ spec }) => spec?.holderIdentity)),
      worlds: worlds && ((caller) => worlds(this, caller)),
    });
  }

  /** A world with a pool that is asked for, and a first process. */
  static async create(options: MachinesWorldOptions): Promise<MachinesWorld> {
    const world = new MachinesWorld(options);
    world.#furnish();
    const { pods } = world.#options;
    if (pods !== undefined) {
      const { servers, time } = world;
      const random = seededRandom(options.seed, 'volumes');
      world.#workload = new Workload({ ...pods, server: servers.target, time, random });
    }
    await world.#openCloud();
    await world.processes.start();
    return world;
  }

  get cloud(): Simulation['cloud'] {
    return this.simulation.cloud;
  }

  get simulation(): Simulation {
    if (this.#cloud === undefined) throw new Error('the cloud is not open yet');
    return this.#cloud;
  }

  /** The control cluster goes on from a backup: its servers are away for a while, and Nodes without a VM are noticed after it. */
  restore(backup: Backup): void {
    const { control } = this.servers;
    const healthy = this.#healthyMachines();
    const all = this.machines.map(({ metadata }) => metadata.uid);
    this.trace.add(`the control cluster is set back from ${control.objects.revisions.current} to ${backup.rv}`);
    control.objects.restore(backup);
    const present = new Set(this.machines.map(({ metadata }) => metadata.uid));
    this.forgotten = new Set([...this.forgotten, ...healthy].filter((uid) => !present.has(uid)));
    this.hasForgotten ||= all.some((uid) => !present.has(uid));
    this.time.schedule(NODE_UNKNOWN_MS, () => {
      for (const { metadata } of this.nodes) {
        if (this.cloud.named(metadata.name).length > 0) continue;
        void this.simulation.nodes?.setReadiness(metadata.name, 'unknown').catch(() => undefined);
        this.#dropNode(metadata.name);
      }
    });
  }

  /**
   * As cloud controllers do with Nodes whose VM is gone. Where there is a Machine that knew of the VM, that is left to the program; one whose
   * creation was never answered does not know the Node.
   */
  #dropNode(name: string): void {
    this.time.schedule(CLOUD_CONTROLLER_MS, () => {
      const machine = this.machines.find(
        ({ metadata }) => metadata.name === name || metadata.labels?.['node'] === name,
      );
      if (this.cloud.named(name).length > 0) return;
      if (machine === undefined) void this.simulation.nodes?.remove(name).catch(() => undefined);
      else if (machine.spec?.providerID === undefined) this.#dropNode(name);
      // Its kubelet was on the VM, also where another machine takes the VM for its own.
      else void this.simulation.nodes?.setReadiness(name, 'unknown').catch(() => undefined);
    });
  }

  /** UIDs of Machines that work. */
  #healthyMachines(): readonly string[] {
    return this.machines
      .filter(
        ({ spec, metadata }) => metadata.deletionTimestamp === undefined && this.cloud.get(spec?.providerID ?? ''),
      )
      .map(({ metadata }) => metadata.uid);
  }

  /** What a user does: `PATCH`, `DELETE` and the like, which succeed. */
  act(method: string, path: string, body?: unknown, cluster: ClusterName = 'control'): unknown {
    this.trace.add(`user ${method} ${path} ${JSON.stringify(body)}`);
    const contentType = method === 'PATCH' ? MERGE_PATCH : undefined;
    const answer = this.servers[cluster].handle({ method, path, body, contentType });
    if ('watch' in answer || answer.code >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
    return answer.body;
  }

  /** Changes the MachineDeployment as a user does. */
  changePool(change: object): void {
    this.act('PATCH', pathOf('machinedeployments', POOL), change);
  }

  get pool(): MachineDeployment | undefined {
    return this.#list('control', 'machinedeployments')[0] as MachineDeployment | undefined;
  }

  /** What runs on the Nodes. */
  get workload(): Workload | undefined {
    return this.#workload;
  }

  get isHonest(): boolean {
    return this.#options.isHonest;
  }

  get machines(): readonly Machine[] {
    return this.#list('control', 'machines') as readonly Machine[];
  }

  get sets(): readonly MachineSet[] {
    return this.#list('control', 'machinesets') as readonly MachineSet[];
  }

  get nodes(): readonly Node[] {
    return this.#list('target', 'nodes') as readonly Node[];
  }

  /** How many objects of a kind of the project there are. */
  count(plural: string): number {
    return this.#list('control', plural).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.processes.kill();
    await this.#cloud?.[Symbol.asyncDispose]();
  }

  #list(cluster: ClusterName, plural: string): readonly unknown[] {
    const { kinds, objects } = this.servers[cluster];
    const kind = kinds.find((one) => one.plural === plural);
    if (kind === undefined) throw new Error(`no kind has the plural ${plural}`);
    return objects.of(kind).list();
  }

  #server(random: Random): SimulatedAPIServer {
    const server = new SimulatedAPIServer({
      kinds: [...KINDS, ...this.#options.kinds],
      nowMs: () => this.time.epochMs,
      uid: () => uuidOf(random),
      suffix: () => charactersOf(random, SUFFIXES, 5),
      firstRevision: integerIn(random, 1, 5_000),
    });
    collectGarbage(server, this.time);
    cleanTokens(server, this.time);
    return server;
  }

  #furnish(): void {
    const { control, target } = this.servers;
    for (const server of new Set([control, target])) {
      for (const name of ['kube-system', 'kube-node-lease', 'default', NAMESPACE]) {
        server.handle({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name } } });
      }
    }
    const { furnish } = this.#options;
    if (furnish === undefined) this.#furnishPool();
    else furnish(this);
  }

  #furnishPool(): void {
    const { replicas, strategy, annotations } = this.#options;
    const metadata = { name: POOL, namespace: NAMESPACE };
    const apiVersion = 'machine.sapcloud.io/v1alpha1';
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata,
      stringData: { userData: 'token: <<BOOTSTRAP_TOKEN>>' },
    };
    this.act('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, secret);
    const providerSpec = { zone: 'a' };
    const machineClass = {
      apiVersion,
      kind: 'MachineClass',
      metadata,
      provider: 'sim',
      providerSpec,
      secretRef: metadata,
    };
    this.act('POST', pathOf('machineclasses'), machineClass);
    const labels = { pool: POOL };
    this.act('POST', pathOf('machinedeployments'), {
      apiVersion,
      kind: 'MachineDeployment',
      metadata: { ...metadata, ...(annotations && { annotations }) },
      spec: {
        replicas,
        selector: { matchLabels: labels },
        strategy: strategy ?? { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } },
        template: {
          metadata: { labels },
          spec: {
            class: { kind: 'MachineClass', name: POOL },
            creationTimeout: '10m',
            healthTimeout: '5m',
            drainTimeout: '5m',
          },
        },
      },
    });
  }

  async #openCloud(): Promise<void> {
    const clock = new VirtualClock(this.time);
    const calm = new SeededWeather(seededRandom(this.#options.seed, 'kubelets'), () => 1);
    const observer = { asked: () => true, answered: () => undefined };
    this.#cloud = await Simulation.start({
      clock,
      log: silentLogger,
      seed: String(this.#options.seed),
      settings: { latencyMs: { ...LATENCIES, ...this.#options.latencyMs }, quota: 10_000 },
      capabilities: { idempotentCreate: this.#options.idempotentCreate },
      cluster: {
        kubeconfig: 'target',
        nodeLeases: false,
        podStopMs: 0,
        otherNodeIDs: this.#options.otherNodeIDs,
        openEndpoint: endpointOf,
        openDispatcher: () =>
          new SimulatedConnection({ time: this.time, clock, server: this.servers.target, weather: calm, observer }),
      },
    });
    this.cloud.onEvent((vm, event) => {
      this.trace.add(`VM ${vm.providerID} of ${vm.machineName} ${event}`);
      const { providerID } = this.machines.find(({ metadata }) => metadata.name === vm.machineName)?.spec ?? {};
      // A Machine does not know the Node of a VM that it has not recorded: its creation was not answered, or with another VM.
      const isUnrecorded = event === 'deleted' && providerID !== vm.providerID;
      if (event === 'vanished' || isUnrecorded) this.#dropNode(vm.machineName);
    });
  }

  #flags(): Flags {
    return {
      namespace: NAMESPACE,
      'control-kubeconfig': 'control',
      'target-kubeconfig': this.#options.hasTarget ? 'target' : 'control',
      // Who has no pool has nobody who would know its VMs.
      ...(this.#options.furnish === undefined ? { driver: 'sim=unix:///nowhere' } : {}),
      'leader-elect': 'true',
      'kube-api-qps': '0',
      'machine-safety-orphan-vms-period': '2m',
      'machine-safety-orphan-vms-grace': '1m',
      ...this.#options.flags,
    };
  }
}

/** Path of the project's objects. */
export function pathOf(plural: string, name?: string): string {
  return `${GROUP}/namespaces/${NAMESPACE}/${plural}${name === undefined ? '' : `/${name}`}`;
}

/** Whether the pool is as it is asked for, with nothing more and nothing less. */
export function isAsAsked(world: MachinesWorld): boolean {
  const { pool, machines, cloud } = world;
  if (pool === undefined) return machines.length === 0 && cloud.size === 0;
  const { replicas = 0 } = pool.spec ?? {};
  const status = pool.status ?? {};
  const runs = ({ status: of, metadata }: Machine | StoredObject): boolean =>
    (of as Machine['status'])?.currentStatus?.phase === 'Running' && metadata.deletionTimestamp === undefined;
  return (
    status.observedGeneration === pool.metadata.generation &&
    (status.updatedReplicas ?? 0) === replicas &&
    (status.availableReplicas ?? 0) === replicas &&
    machines.length === replicas &&
    cloud.size === replicas &&
    machines.every(runs)
  );
}
