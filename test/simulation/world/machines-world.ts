import { join } from 'node:path';

import { MACHINE_NAME_LABEL } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../../pkg/apis/machine/v1alpha1/machine-set.ts';
import type {
  MachineDeployment,
  MachineDeploymentStrategy,
} from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { Lease, Node } from '../../../pkg/apis/wire.ts';
import { Simulation } from '../../../packages/providers/sim/simulation.ts';
import { canonicalIDOf } from '../../../packages/providers/sim/vm.ts';
import type { ServedWorld } from '../../../pkg/controllers/world.ts';
import { silentLogger } from '../../../pkg/base/log/logger.ts';
import { charactersOf, type Random, uuidOf } from '../../../pkg/base/random/random.ts';
import { SimulatedAPIServer } from '../api-server/api-server.ts';
import type { Backup } from '../api-server/objects.ts';
import { type Kind, kindsWith } from '../api-server/kinds.ts';
import type { StoredObject } from '../api-server/stored-object.ts';
import { initializeNodes } from './cloud-controller.ts';
import { DriverProcess } from './driver-process.ts';
import { collectGarbage } from './garbage-collector.ts';
import { SimulatedConnection } from './network.ts';
import { Past } from './past.ts';
import {
  type Caller,
  type ClusterName,
  endpointOf,
  hasCells,
  Processes,
  type ProcessRequest,
  type Reached,
  type Servers,
} from './processes.ts';
import { emptyNamespaces } from './namespace-controller.ts';
import { integerIn, seededRandom } from './seeded-random.ts';
import type { Flags, SimulatedProcess } from './simulated-process.ts';
import { askerAt, targetAt } from './target-address.ts';
import { Trace } from './trace.ts';
import { cleanTokens } from './token-cleaner.ts';
import { VirtualClock, VirtualTime } from './virtual-clock.ts';
import { Way } from './way.ts';
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
  /** VMs have to be initialized by a call of its own. */
  readonly initializesVMs?: boolean;
  /** Nodes have to be initialized by a cloud controller manager, which is away now and then. */
  readonly initializesNodes?: boolean;
  /** Its cloud controller manager finds no VMs of Nodes that are not ready, and deletes these. */
  readonly deletesNodes?: boolean;
  /** Flags of its processes beside those that the world needs. */
  readonly flags?: Flags;
  /** In place of the kinds of the project and those built in. */
  readonly baseKinds?: readonly Kind[];
  /** Kinds that its servers have beside those. */
  readonly kinds?: readonly Kind[];
  /** Puts what else there is into it, before the first process starts; a pool unless it is given. */
  readonly furnish?: ((world: MachinesWorld) => void) | undefined;
  /** What the simulated cloud takes in place of the provider spec of a class; the same, unless it is given. */
  readonly simulatedSpec?: (providerSpec: unknown) => unknown;
  /** In place of all that a process serves, where some is reached in another way here. */
  readonly worlds?: ((world: MachinesWorld, caller: Caller) => readonly ServedWorld[]) | undefined;
  /** Processes that run side by side. */
  readonly managers?: number;
  /** It is a namespace of another world, with a target cluster and a cloud of its own. */
  readonly cell?: CellOptions | undefined;
  readonly keepsTrace?: boolean;
  /** Wall time of its beginning; the first moment of 2026 unless it is given. */
  readonly epochMs?: number | undefined;
}

/** What makes a world a cell of another one, whose time, control cluster and processes it shares. */
export interface CellOptions {
  readonly of: MachinesWorld;
  readonly namespace: string;
  /** Under which processes manage it. */
  readonly lease: string;
  /** Its Nodes are in the target cluster of that world, beside those of other cells. */
  readonly sharesTarget: boolean;
}

/** Where all namespaced objects of the world are. */
export const NAMESPACE = 'pools';
/** Of Nodes in a target cluster that others have, too. */
export const CELL_LABEL = 'example.com/cell';
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
  /** Where its pool is. */
  readonly namespace: string;
  /** Under which its pool is managed; undefined: all that there are. */
  readonly lease: string | undefined;
  /** Places with a pool: itself, unless its processes manage many namespaces. */
  readonly cells: MachinesWorld[];
  /** Of the processes' ways to the API servers, of a cell to its target cluster; that of the kubelets is always fine. */
  readonly weather: SeededWeather;
  readonly servers: Servers;
  /** That of the processes to its target cluster, where it has one. */
  readonly targetWay: Way;
  /** Of each server. */
  readonly pasts: Readonly<Record<ClusterName, Past>>;
  /** The program. */
  readonly processes: Processes;
  /** UIDs of Machines that had VMs and were forgotten when the control cluster was set back. */
  forgotten: ReadonlySet<string> = new Set();
  /** Whether any Machines were forgotten then, also such as were just being created. */
  hasForgotten = false;
  /** That of the driver of its cloud. */
  readonly driverProcess: DriverProcess;
  #cloud: Simulation | undefined;
  readonly #options: Required<MachinesWorldOptions>;
  readonly #random: (name: string) => Random;
  #workload: Workload | undefined;
  #blindness: Random | undefined;
  #isActing = false;
  /** Names of Nodes that a cloud controller manager has deleted, which did not find their VMs. */
  readonly deletedNodes = new Set<string>();
  /** Nodes of its VMs that are there, or were last, by name. */
  readonly #ownNodes = new Map<string, Node>();

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
      initializesVMs: false,
      initializesNodes: false,
      deletesNodes: false,
      flags: {},
      baseKinds: KINDS,
      kinds: [],
      furnish: undefined,
      simulatedSpec: (providerSpec) => providerSpec,
      worlds: undefined,
      managers: 1,
      cell: undefined,
      keepsTrace: false,
      epochMs: undefined,
      ...options,
    };
    const { seed, hasTarget, keepsTrace, epochMs, cell } = this.#options;
    const random = (name: string): Random =>
      seededRandom(seed, cell === undefined ? name : `${name} of ${cell.namespace}`);
    const { of } = cell ?? {};
    this.#random = random;
    this.namespace = cell?.namespace ?? NAMESPACE;
    this.lease = cell?.lease;
    this.time = of?.time ?? new VirtualTime(random('order'), epochMs);
    this.trace = of?.trace ?? new Trace(() => this.time.elapsedMs, { keepsAll: keepsTrace });
    this.driverProcess = new DriverProcess(this.time);
    this.weather = new SeededWeather(random('weather'), {
      nowMs: () => this.time.elapsedMs,
      forbids: random('forbidden'),
      others: random('other writers'),
      caches: random('old caches'),
    });
    const commonWay = this.sharesTarget ? of?.targetWay : undefined;
    this.targetWay = commonWay ?? new Way(this.weather, () => this.time.elapsedMs);
    const control = of?.servers.control ?? this.#server(random('control cluster'));
    const isOwn = hasTarget && !this.sharesTarget;
    const target = isOwn ? this.#server(random('target cluster')) : (of?.servers.target ?? control);
    this.servers = { control, target };
    const ofControl = of?.pasts.control ?? new Past(control, this.time);
    this.pasts = {
      control: ofControl,
      target: isOwn ? new Past(target, this.time) : (of?.pasts.target ?? ofControl),
    };
    if (this.sharesTarget) this.#noteZones();
    this.cells = this.#hasCells ? [] : [this];
    of?.cells.push(this);
    this.processes = of?.processes ?? this.#openProcesses();
  }

  /** Since when no request reaches one of its clusters; Infinity: it is reached. */
  downSinceMs(cluster: ClusterName): number {
    const { cell, hasTarget } = this.#options;
    return cluster === 'target' && hasTarget ? this.targetWay.downSinceMs : (cell?.of ?? this).weather.downSinceMs;
  }

  /** Whether there are Nodes of others in its target cluster. */
  get sharesTarget(): boolean {
    return this.#options.cell?.sharesTarget === true;
  }

  /** Whose VM a Node is, as its provider id has it: the zone of a VM is its namespace. */
  isOwn(node: object): boolean {
    if (!this.sharesTarget) return true;
    return canonicalIDOf((node as Node).spec?.providerID ?? '').startsWith(`sim:///${this.namespace}/`);
  }

  #noteZones(): void {
    this.servers.target.objects.onChange(({ plural }, { object }) => {
      if (plural !== 'nodes') return;
      const { name } = object.metadata;
      if (this.isOwn(object)) this.#ownNodes.set(name, object as object as Node);
      else this.#ownNodes.delete(name);
    });
  }

  /** Whether its processes manage many namespaces, each of which is a world like this one. */
  get #hasCells(): boolean {
    return hasCells(this.#options.flags);
  }

  #openProcesses(): Processes {
    const { time, trace } = this;
    const { seed, managers, worlds, simulatedSpec } = this.#options;
    return new Processes({
      seed,
      time,
      trace,
      flags: this.#flags(),
      replicas: managers,
      reach: (host) => this.#reach(host),
      cloud: (provider) => (this.#hasCells ? this.#cellNamed(provider) : this),
      simulatedSpec,
      leases: () => this.leases,
      worlds: worlds && ((caller) => worlds(this, caller)),
    });
  }

  /** The server at an address; that of a cell's target is reached by each cell under another one. */
  #reach(host: string): Reached {
    const target = targetAt(host);
    if (target !== undefined) {
      const { servers, pasts, targetWay } = this.#cellNamed(target);
      return { server: servers.target, past: pasts.target, weather: targetWay };
    }
    const name = host === 'target' ? 'target' : 'control';
    const weather = name === 'target' ? this.targetWay : this.weather;
    return { server: this.servers[name], past: this.pasts[name], weather };
  }

  #cellNamed(name: string): MachinesWorld {
    const cell = this.cells.find(({ namespace }) => namespace === name);
    if (cell === undefined) throw new Error(`there is no cell ${name}`);
    return cell;
  }

  /** Whether a process asks for something that belongs to this pool. */
  concerns({ to, path }: ProcessRequest): boolean {
    if (this.lease === undefined) return true;
    if (to === 'control') return path.includes(`/namespaces/${this.namespace}/`);
    if (this.sharesTarget && to === 'target') {
      const [, name = ''] = /^\/api\/v1\/nodes\/([^/?]+)/.exec(path) ?? [];
      const node = this.#ownNodes.get(name);
      // One to which no Machine refers, or none any more, is that of whoever its name decides for.
      return node !== undefined && this.machines.some((machine) => refersTo(machine, node));
    }
    return to === this.namespace || askerAt(to) === this.namespace;
  }

  /** The process that manages the pool, or else the newest. */
  get leader(): SimulatedProcess {
    return this.processes.leaderBy(this.lease);
  }

  /** A world with a pool that is asked for, and a first process; one with cells is empty at first. */
  static async create(options: MachinesWorldOptions): Promise<MachinesWorld> {
    const world = new MachinesWorld(options);
    world.#furnish();
    const { pods, cell, initializesNodes, deletesNodes } = world.#options;
    if (deletesNodes) world.#blindness = world.#random('blind cloud controller');
    if (initializesNodes) initializeNodes(world.servers.target, world.time, world.#random('cloud controller'));
    if (pods !== undefined) {
      const { servers, time } = world;
      world.#workload = new Workload({ ...pods, server: servers.target, time, random: world.#random('volumes') });
    }
    // Where there will be cells, each has a cloud, without which no process starts.
    if (!world.#hasCells) await world.#openCloud();
    if (!world.#hasCells && cell === undefined) await world.processes.start();
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
    const noticed = this.cells.map((cell) => cell.#remember());
    this.trace.add(`the control cluster is set back from ${control.objects.revisions.current} to ${backup.rv}`);
    control.objects.restore(backup);
    for (const notice of noticed) notice();
  }

  /** What there is of Machines; what is returned notes which were forgotten meanwhile. */
  #remember(): () => void {
    const healthy = this.#healthyMachines();
    const all = this.machines.map(({ metadata }) => metadata.uid);
    return () => this.#noticeForgotten(healthy, all);
  }

  #noticeForgotten(healthy: readonly string[], all: readonly string[]): void {
    const present = new Set(this.machines.map(({ metadata }) => metadata.uid));
    this.forgotten = new Set([...this.forgotten, ...healthy].filter((uid) => !present.has(uid)));
    this.hasForgotten ||= all.some((uid) => !present.has(uid));
    this.#noticeNodes();
  }

  /** Kubelets say how their Nodes are, and Nodes without a VM are noticed. */
  #noticeNodes(): void {
    this.time.schedule(NODE_UNKNOWN_MS, () => {
      this.simulation.nodes?.repost();
      for (const { metadata } of this.nodes) {
        if (this.cloud.named(metadata.name).length > 0) continue;
        void this.simulation.nodes?.setReadiness(metadata.name, 'unknown').catch(() => undefined);
        this.#dropNode(metadata.name);
      }
    });
  }

  /** The target cluster goes on from a backup; whoever restores it starts the kubelets anew, so much later. */
  restoreTarget(backup: Backup, restartedMs: number): void {
    const { target } = this.servers;
    this.trace.add(`the target cluster of ${this.namespace} is set back to ${backup.rv}`);
    target.objects.restore(backup);
    this.#noticeNodes();
    this.time.schedule(restartedMs, () => {
      this.trace.add(`the kubelets of ${this.namespace} are started anew`);
      for (const { machineName } of this.cloud.all()) this.simulation.nodes?.restart(machineName);
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
    this.#isActing = true;
    const answer = this.servers[cluster].handle({ method, path, body, contentType });
    this.#isActing = false;
    if ('watch' in answer || answer.code >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
    return answer.body;
  }

  /** Whether what changes at this moment is what a user does. */
  get isActing(): boolean {
    return this.#isActing;
  }

  /** Changes the MachineDeployment as a user does. */
  changePool(change: object): void {
    this.act('PATCH', this.pathOf('machinedeployments', POOL), change);
  }

  /** Path of an object of the project in its namespace. */
  pathOf(plural: string, name?: string): string {
    return pathOf(plural, name, this.namespace);
  }

  get pool(): MachineDeployment | undefined {
    return this.#own('machinedeployments')[0] as MachineDeployment | undefined;
  }

  /** What runs on the Nodes. */
  get workload(): Workload | undefined {
    return this.#workload;
  }

  /** What of the leader manages the pool: a cell that begins anew is another one. */
  get manager(): object {
    return this.leader.cells?.running.get(this.namespace) ?? this.leader;
  }

  /** What it is made from. */
  get options(): Required<MachinesWorldOptions> {
    return this.#options;
  }

  /** When the cloud controller manager deletes Nodes that are not ready; undefined where it finds their VMs. */
  get blindness(): Random | undefined {
    return this.#blindness;
  }

  get isHonest(): boolean {
    return this.#options.isHonest;
  }

  get machines(): readonly Machine[] {
    return this.#own('machines') as readonly unknown[] as readonly Machine[];
  }

  /** In all namespaces of the control cluster. */
  get leases(): readonly Lease[] {
    return this.#list('control', 'leases') as readonly Lease[];
  }

  get sets(): readonly MachineSet[] {
    return this.#own('machinesets') as readonly unknown[] as readonly MachineSet[];
  }

  get nodes(): readonly Node[] {
    const nodes = this.#list('target', 'nodes') as readonly StoredObject[];
    return nodes.filter((node) => this.isOwn(node)) as readonly object[] as readonly Node[];
  }

  /** How many objects of a kind of the project there are. */
  count(plural: string): number {
    return this.#own(plural).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.processes.kill();
    for (const { simulation } of this.cells) await simulation[Symbol.asyncDispose]();
  }

  /** Of the control cluster, in its namespace. */
  #own(plural: string): readonly KubeObject[] {
    const all = this.#list('control', plural) as readonly KubeObject[];
    return this.lease === undefined ? all : all.filter(({ metadata }) => metadata.namespace === this.namespace);
  }

  #list(cluster: ClusterName, plural: string): readonly unknown[] {
    const { kinds, objects } = this.servers[cluster];
    const kind = kinds.find((one) => one.plural === plural);
    if (kind === undefined) throw new Error(`no kind has the plural ${plural}`);
    return objects.of(kind).list();
  }

  #server(random: Random): SimulatedAPIServer {
    const server = new SimulatedAPIServer({
      kinds: [...this.#options.baseKinds, ...this.#options.kinds],
      nowMs: () => this.time.epochMs,
      uid: () => uuidOf(random),
      suffix: () => charactersOf(random, SUFFIXES, 5),
      firstRevision: integerIn(random, 1, 5_000),
    });
    collectGarbage(server, this.time);
    cleanTokens(server, this.time);
    emptyNamespaces(server, this.time, this.#random('order of kinds'));
    return server;
  }

  #furnish(): void {
    const { control, target } = this.servers;
    const { furnish, cell } = this.#options;
    for (const server of cell === undefined ? new Set([control, target]) : [target]) {
      for (const name of ['kube-system', 'kube-node-lease', 'default', NAMESPACE]) {
        server.handle({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name } } });
      }
    }
    if (furnish === undefined) this.furnishPool();
    else furnish(this);
  }

  /** Asks for its pool, in its namespace. */
  furnishPool(): void {
    const { replicas, strategy, annotations, cell } = this.#options;
    const { namespace } = this;
    const metadata = { name: POOL, namespace };
    const apiVersion = 'machine.sapcloud.io/v1alpha1';
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata,
      stringData: { userData: 'token: <<BOOTSTRAP_TOKEN>>' },
    };
    this.act('POST', `/api/v1/namespaces/${namespace}/secrets`, secret);
    const providerSpec = {
      zone: this.sharesTarget ? namespace : 'a',
      ...(this.#options.initializesVMs && { initialize: true }),
    };
    const machineClass = {
      apiVersion,
      kind: 'MachineClass',
      metadata,
      provider: cell?.namespace ?? 'sim',
      providerSpec,
      secretRef: metadata,
    };
    this.act('POST', this.pathOf('machineclasses'), machineClass);
    const labels = { pool: POOL };
    this.act('POST', this.pathOf('machinedeployments'), {
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
            ...(this.sharesTarget && { nodeTemplate: { metadata: { labels: { [CELL_LABEL]: namespace } } } }),
            creationTimeout: '10m',
            healthTimeout: '5m',
            drainTimeout: '5m',
            ...(strategy?.type === 'InPlaceUpdate' && { inPlaceUpdateTimeout: '5m' }),
          },
        },
      },
    });
  }

  async #openCloud(): Promise<void> {
    const { seed, cell } = this.#options;
    this.#cloud = await this.openAccount(cell === undefined ? String(seed) : `${seed} ${cell.namespace}`);
    this.cloud.onEvent((vm, event) => {
      const where = this.lease === undefined ? '' : ` in ${this.namespace}`;
      this.trace.add(`VM ${vm.providerID} of ${vm.machineName} ${event}${where}`);
      const { providerID } = this.machines.find(({ metadata }) => metadata.name === vm.machineName)?.spec ?? {};
      // A Machine does not know the Node of a VM that it has not recorded: its creation was not answered, or with another VM.
      const isUnrecorded = event === 'deleted' && providerID !== vm.providerID;
      const isUnknown = event === 'vanished' || isUnrecorded;
      if (isUnknown) this.#dropNode(vm.machineName);
      // Of a Node with another name that shows an id of another form, nothing says whose it is but to those who know that form.
      const isHidden = event === 'deleted' && this.#options.otherNodeIDs;
      if (vm.hostname !== undefined && (isUnknown || isHidden)) this.#dropNode(vm.hostname);
    });
  }

  /** A cloud like its own, whose VMs become Nodes of its target cluster; whoever opens it ends it. */
  async openAccount(seed: string): Promise<Simulation> {
    const clock = new VirtualClock(this.time);
    const { idempotentCreate } = this.#options;
    const calm = new SeededWeather(this.#random('kubelets'), {
      nowMs: () => this.time.elapsedMs,
      forbids: () => 1,
      others: () => 1,
      caches: () => 1,
    });
    const observer = { asked: () => true, answered: () => undefined };
    return await Simulation.start({
      clock,
      log: silentLogger,
      seed,
      settings: {
        latencyMs: { ...LATENCIES, ...this.#options.latencyMs },
        quota: 10_000,
        createsBlindly: !idempotentCreate,
      },
      capabilities: { idempotentCreate },
      cluster: {
        kubeconfig: 'target',
        nodeLeases: false,
        podStopMs: 0,
        otherNodeIDs: this.#options.otherNodeIDs,
        uninitializedNodes: this.#options.initializesNodes,
        openEndpoint: endpointOf,
        openDispatcher: () =>
          new SimulatedConnection({
            time: this.time,
            clock,
            server: this.servers.target,
            past: this.pasts.target,
            weather: calm,
            observer,
          }),
      },
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
export function pathOf(plural: string, name?: string, namespace = NAMESPACE): string {
  return `${GROUP}/namespaces/${namespace}/${plural}${name === undefined ? '' : `/${name}`}`;
}

/** Whether those who manage a Machine know a Node as that of it; one that joins while its Machine is being created is not yet. */
function refersTo({ metadata, spec }: Machine, { metadata: { name, labels }, spec: of }: Node): boolean {
  const isItsVM = canonicalIDOf(spec?.providerID ?? '-') === canonicalIDOf(of?.providerID ?? '');
  return metadata.labels?.['node'] === name || isItsVM || labels?.[MACHINE_NAME_LABEL] === metadata.name;
}

/** Whether the pool is as it is asked for, with nothing more and nothing less. */
export function isAsAsked(world: MachinesWorld): boolean {
  const { pool, sets, machines, cloud } = world;
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
    // Another manager may have changed that, and nobody has seen it.
    sets.reduce((sum, { spec }) => sum + (spec.replicas ?? 0), 0) === replicas &&
    cloud.size === replicas &&
    machines.every(runs) &&
    // Machines go with them.
    world.nodes.every(({ metadata }) => metadata.deletionTimestamp === undefined)
  );
}
