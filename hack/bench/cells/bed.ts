import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import PQueue from 'p-queue';

import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { grant } from '../../../test/integration/shipped-roles.ts';
import type { Api } from '../../control-plane/api.ts';
import { applyManifests, type Manifest, parseManifests, readManifests } from '../../control-plane/apply.ts';
import type { Connection } from '../../control-plane/connection.ts';
import { startControlPlane } from '../../control-plane/control-plane.ts';
import { onEnd } from '../../control-plane/on-end.ts';
import { freePort } from '../../control-plane/ports.ts';
import { type Program, startProgram } from '../programs.ts';
import { MeasuredManager } from './manager.ts';
import { ACCOUNT } from './accounts-driver.ts';
import { type Target, TARGET_ROLES, Targets } from './targets.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const HEAP_HOOK = path.join(import.meta.dirname, 'heap.js');
/** Label by which cells are selected. */
const LABEL = 'cell';
const SECRET = 'target';
const GROUP = '/apis/machine.sapcloud.io/v1alpha1';
const PARALLEL = 8;

/** How a bed is made. */
export interface CellsBedOptions {
  /** Of the targets, so many are real control planes. */
  readonly realTargets: number;
  /** Folder with compiled programs; the sources otherwise. */
  readonly built?: string | undefined;
  readonly nodeFlags: readonly string[];
  readonly logs?: string | undefined;
}

/** A real control cluster, and namespaces in it with a target cluster each; no manager yet. */
export class CellsBed implements AsyncDisposable {
  readonly api: Api;
  readonly connection: Connection;
  readonly targets: Targets;
  readonly logs: string;
  /** Of the control plane of the control cluster. */
  readonly pids: Readonly<Record<'kube-apiserver' | 'etcd', number>>;
  readonly #kubeconfig: string;
  readonly #socket: string;
  readonly #options: CellsBedOptions;
  readonly #stack: AsyncDisposableStack;
  readonly #byNamespace = new Map<string, Target>();
  readonly #programs: Set<Program>;
  #real = 0;

  private constructor(
    parts: Pick<CellsBed, 'api' | 'connection' | 'targets' | 'logs' | 'pids'>,
    own: {
      readonly kubeconfig: string;
      readonly socket: string;
      readonly options: CellsBedOptions;
      readonly programs: Set<Program>;
    },
    stack: AsyncDisposableStack,
  ) {
    this.api = parts.api;
    this.connection = parts.connection;
    this.targets = parts.targets;
    this.logs = parts.logs;
    this.pids = parts.pids;
    this.#kubeconfig = own.kubeconfig;
    this.#socket = own.socket;
    this.#options = own.options;
    this.#programs = own.programs;
    this.#stack = stack;
  }

  /** Starts the control cluster, with the definitions and the roles that are shipped, and the driver. */
  static async start(options: CellsBedOptions): Promise<CellsBed> {
    const { logs = mkdtempSync(path.join(tmpdir(), 'machinist-bench-')) } = options;
    mkdirSync(logs, { recursive: true });
    await using stack = new AsyncDisposableStack();
    const log = (line: string): void => console.error(line);
    const plane = stack.use(await startControlPlane({ controllerManager: false, log }));
    const programs = new Set<Program>();
    stack.use(
      onEnd(() => {
        for (const program of programs) void program.stop();
        plane.run.endNow();
      }),
    );
    const { connection } = plane;
    const api = stack.adopt(connection.api(), (one) => one.close());
    await applyManifests(api, parseManifests(readFileSync(path.join(ROOT, 'deploy/namespace.yaml'), 'utf8')));
    await applyManifests(api, readManifests(path.join(ROOT, 'crds')));
    await applyManifests(api, readManifests(path.join(ROOT, 'deploy/rbac')));
    const sockets = mkdtempSync(path.join(tmpdir(), 'machinist-bench-'));
    stack.defer(() => rmSync(sockets, { recursive: true, force: true }));
    const socket = path.join(sockets, 'driver.sock');
    const targets = stack.use(await Targets.start(connection.directory, socket));
    const pids = { 'kube-apiserver': plane.apiserver.pid ?? 0, etcd: plane.etcd.pid ?? 0 };
    const own = { kubeconfig: await connection.kubeconfigFor({ user: 'machinist' }), socket, options, programs };
    return new CellsBed({ api, connection, targets, logs, pids }, own, stack.move());
  }

  /** Makes namespaces with everything but the label that selects them, and no machines. */
  async addNamespaces(names: readonly string[]): Promise<void> {
    const queue = new PQueue({ concurrency: PARALLEL });
    await Promise.all(names.map((name) => queue.add(() => this.#addNamespace(name))));
  }

  /** Selects namespaces, or no longer. */
  async select(names: readonly string[], isCell: boolean): Promise<void> {
    const labels = { [LABEL]: isCell ? '' : null };
    await this.#each(names, (name) => this.api.send('PATCH', `/api/v1/namespaces/${name}`, { metadata: { labels } }));
  }

  /** Asks for so many machines in each. */
  async scale(names: readonly string[], replicas: number): Promise<void> {
    await this.#each(names, (name) =>
      this.api.send('PATCH', `${GROUP}/namespaces/${name}/machinedeployments/pool`, { spec: { replicas } }),
    );
  }

  /** Asks for other machines, a tenth of them at once; for others again in each round. */
  async roll(name: string, round: number): Promise<void> {
    const strategy = { rollingUpdate: { maxSurge: '10%', maxUnavailable: '10%' } };
    const template = { metadata: { labels: { round: String(round) } } };
    await this.api.send('PATCH', `${GROUP}/namespaces/${name}/machinedeployments/pool`, {
      spec: { strategy, template },
    });
  }

  async deleteMachine(namespace: string, name: string): Promise<void> {
    await this.api.send('DELETE', `${GROUP}/namespaces/${namespace}/machines/${name}`);
  }

  /** The Machines of a namespace that run, and are not deleted. */
  async runningIn(namespace: string): Promise<readonly string[]> {
    const { items } = await this.api.send<{ items: readonly Machine[] }>(
      'GET',
      `${GROUP}/namespaces/${namespace}/machines?resourceVersion=0`,
    );
    return items.filter(isRunning).map(({ metadata }) => metadata.name);
  }

  /** How many machines of a namespace are available, and how many of these as they are asked for now. */
  async poolOf(name: string): Promise<{ readonly available: number; readonly upToDate: number }> {
    const { metadata, status = {} } = await this.api.send<{
      readonly metadata: { readonly generation: number };
      readonly status?: {
        readonly observedGeneration?: number;
        readonly availableReplicas?: number;
        readonly updatedReplicas?: number;
        readonly replicas?: number;
      };
    }>('GET', `${GROUP}/namespaces/${name}/machinedeployments/pool`);
    const { observedGeneration, availableReplicas: available = 0, updatedReplicas = 0, replicas = 0 } = status;
    const isSeen = observedGeneration === metadata.generation && replicas === updatedReplicas;
    return { available, upToDate: isSeen ? Math.min(available, updatedReplicas) : 0 };
  }

  /** How many Machines of all namespaces run; from the watch cache of the API server. */
  async running(): Promise<number> {
    const path_ = `${GROUP}/machines?resourceVersion=0`;
    const { items } = await this.api.send<{ items: readonly Machine[] }>('GET', path_);
    return items.filter(isRunning).length;
  }

  /** Port of the target cluster of a namespace. */
  portOf(name: string): number {
    return Number(new URL(this.#target(name).url).port);
  }

  /** A manager of all selected namespaces. */
  async startManager(): Promise<MeasuredManager> {
    return await this.#start(['--namespace=machinist', `--cells=${LABEL}`, `--cell-kubeconfig-secret=${SECRET}`]);
  }

  /** A manager of one namespace, without cells. */
  async startSingle(name: string): Promise<MeasuredManager> {
    const { kubeconfig } = this.#target(name);
    await grant(this.api, 'control', name);
    return await this.#start([`--namespace=${name}`, `--target-kubeconfig=${kubeconfig}`]);
  }

  async #start(flags: readonly string[]): Promise<MeasuredManager> {
    const { built, nodeFlags } = this.#options;
    const port = await freePort();
    const heapFile = path.join(this.logs, `heap-${port}.json`);
    process.env['HEAP_FILE'] = heapFile;
    // As layout cells has it.
    process.env['MALLOC_ARENA_MAX'] = '2';
    const launch = {
      root: built === undefined ? ROOT : path.resolve(built),
      extension: built === undefined ? ('ts' as const) : ('js' as const),
      nodeFlags: [...nodeFlags, '--expose-gc', `--import=${HEAP_HOOK}`],
      logs: this.logs,
    };
    const program = startProgram(launch, 'machinist', [
      'run',
      `--control-kubeconfig=${this.#kubeconfig}`,
      `--driver=sim=unix://${this.#socket}`,
      '--address=127.0.0.1',
      `--port=${port}`,
      ...flags,
    ]);
    this.#programs.add(program);
    return this.#stack.use(new MeasuredManager(program, port, heapFile));
  }

  async #addNamespace(name: string): Promise<void> {
    const isReal = this.#real < this.#options.realTargets;
    if (isReal) this.#real += 1;
    const target = isReal ? await this.#startTarget(name) : await this.targets.simulate(name);
    this.#byNamespace.set(name, target);
    const kubeconfig = readFileSync(target.kubeconfig).toString('base64');
    await applyManifests(this.api, manifestsOf(name, kubeconfig));
  }

  #target(name: string): Target {
    const target = this.#byNamespace.get(name);
    if (target === undefined) throw new Error(`namespace ${name} was not added`);
    return target;
  }

  async #startTarget(name: string): Promise<Target> {
    const plane = this.#stack.use(await startControlPlane({ controllerManager: false }));
    const api = plane.connection.api();
    for (const file of TARGET_ROLES) await grant(api, file, 'default');
    await api.close();
    await this.targets.adopt(name, await plane.connection.kubeconfigFor({ user: 'machinist-sim-driver' }));
    return {
      kubeconfig: await plane.connection.kubeconfigFor({ user: 'machinist' }),
      url: plane.connection.url,
    };
  }

  async #each(names: readonly string[], run: (name: string) => Promise<unknown>): Promise<void> {
    const queue = new PQueue({ concurrency: PARALLEL });
    await Promise.all(names.map((name) => queue.add(() => run(name))));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

function isRunning({ metadata, status }: Machine): boolean {
  return status?.currentStatus?.phase === 'Running' && metadata.deletionTimestamp === undefined;
}

function manifestsOf(namespace: string, kubeconfig: string): Manifest[] {
  const api = 'machine.sapcloud.io/v1alpha1';
  const labels = { pool: namespace };
  const secretRef = { name: 'account', namespace };
  const stringData = { [ACCOUNT]: namespace, userData: 'token <<BOOTSTRAP_TOKEN>>' };
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: SECRET, namespace }, data: { kubeconfig } },
    { apiVersion: 'v1', kind: 'Secret', metadata: secretRef, stringData },
    {
      apiVersion: api,
      kind: 'MachineClass',
      metadata: { name: 'pool', namespace },
      provider: 'sim',
      providerSpec: { zone: namespace },
      secretRef,
    },
    {
      apiVersion: api,
      kind: 'MachineDeployment',
      metadata: { name: 'pool', namespace },
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
        template: { metadata: { labels }, spec: { class: { kind: 'MachineClass', name: 'pool' } } },
      },
    },
  ];
}
