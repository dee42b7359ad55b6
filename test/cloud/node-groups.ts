import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { credentials } from '@grpc/grpc-js';

import { Autoscaler, type Settings } from '../../hack/autoscaler/autoscaler.ts';
import type { CloudProvider, NodeRef } from '../../hack/autoscaler/cloud-provider.ts';
import { Cluster } from '../../hack/autoscaler/cluster.ts';
import { GrpcProvider } from '../../hack/autoscaler/grpc-provider.ts';
import { runLoops } from '../../hack/autoscaler/loops.ts';
import { decodeNode } from '../../hack/autoscaler/node-bytes.ts';
import { applyManifests, type Manifest } from '../../hack/control-plane/apply.ts';
import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import { NODE_GROUP_MAX_ANNOTATION, NODE_GROUP_MIN_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { eventually } from '../expect/eventually.ts';
import { grant } from '../integration/shipped-roles.ts';
import { InProcessManager } from './manager.ts';
import type { SimulatedCloud } from './sim-cloud.ts';
import type { Site } from './site.ts';

const GROUP = '/apis/machine.sapcloud.io/v1alpha1';
const WEB = 'web';
/** So many of its pods fill a machine of the simulated cloud. */
export const PODS_PER_MACHINE = 2;
const LOOK_MS = 300;
/** Keeps pods off Nodes that another test has left. */
const POOL_LABEL = 'test.machinist/pool';

/** How many machines each group may have. */
export type Limits = Readonly<Record<string, { readonly min: number; readonly max: number }>>;

/** What the groups are made of. */
export interface NodeGroupsOptions {
  readonly site: Site;
  readonly cloud: SimulatedCloud;
  readonly groups: Limits;
}

/**
 * MachineDeployments without machines that an autoscaler may scale, and a Deployment whose pods need machines, in a namespace of their own.
 * The manager listens for the autoscaler on a socket.
 */
export class ScaledGroups implements AsyncDisposable {
  readonly namespace = `t-${randomBytes(5).toString('hex')}`;
  /** What the autoscaler did and met. */
  readonly said: string[] = [];
  /** Calls of autoscalers that change something: by how many, or which nodes are to go, by name or id of the placeholder. */
  readonly asked: { readonly method: string; readonly group: string; readonly by: number | readonly string[] }[] = [];
  /** Whether the answer to every second of these calls gets lost, after the manager has obeyed or refused. */
  losesAnswers = false;
  /** How far the clock of autoscalers is ahead. */
  skippedMs = 0;
  readonly #options: NodeGroupsOptions;
  readonly #directory: string;
  /** Managers so far: one that was given up may listen for a while yet, so each has a socket of its own. */
  #managers = 0;

  private constructor(options: NodeGroupsOptions, directory: string) {
    this.#options = options;
    this.#directory = directory;
  }

  /** Creates the objects. */
  static async create(options: NodeGroupsOptions): Promise<ScaledGroups> {
    const groups = new ScaledGroups(options, await mkdtemp(join(tmpdir(), 'groups-')));
    const { namespace } = groups;
    const { api } = options.site;
    await api.send('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    await grant(api, 'control', namespace);
    await applyManifests(api, manifestsOf(namespace, options.groups));
    return groups;
  }

  /** Everything that autoscalers wanted to be deleted, each as often as they did. */
  get named(): readonly string[] {
    return this.asked.flatMap(({ by }) => (typeof by === 'number' ? [] : by));
  }

  /** A manager that works for them; autoscalers that are made from now on call it. */
  async manager(): Promise<InProcessManager> {
    this.#managers++;
    const { site, cloud } = this.#options;
    return await InProcessManager.start({
      kubeconfig: site.kubeconfig,
      namespace: this.namespace,
      driver: cloud.address,
      flags: { 'machine-safety-grace': '0s', 'autoscaler-grpc-address': this.#address },
    });
  }

  /** An autoscaler at work, and a scheduler, until it is disposed of. */
  autoscaler(settings: Partial<Settings> = {}): AsyncDisposable {
    const { api } = this.#options.site;
    const grpc = new GrpcProvider({
      address: this.#address,
      credentials: credentials.createInsecure(),
      decodeNode: (bytes) => decodeNode(api, bytes),
    });
    const stop = new AbortController();
    const cluster = new Cluster(api, this.namespace);
    const say = (line: string): void => void this.said.push(line);
    const autoscaler = new Autoscaler({
      provider: this.#recording(grpc),
      cluster,
      settings,
      say,
      nowMs: () => performance.now() + this.skippedMs,
    });
    const onLost = (err: unknown): void => say(`loop lost: ${String(err)}`);
    const loops = runLoops({ autoscaler, cluster, scanMs: LOOK_MS, signal: stop.signal, onLost });
    return {
      [Symbol.asyncDispose]: async () => {
        stop.abort();
        await loops;
        await grpc[Symbol.asyncDispose]();
      },
    };
  }

  /** What `kubectl scale` does. */
  async scaleGroup(name: string, replicas: number): Promise<void> {
    const path = `${GROUP}/namespaces/${this.namespace}/machinedeployments/${name}`;
    await this.#options.site.api.send('PATCH', path, { spec: { replicas } });
  }

  /** Changes the template of a group, so that each of its machines has to be replaced. */
  async roll(name: string): Promise<void> {
    const path = `${GROUP}/namespaces/${this.namespace}/machinedeployments/${name}`;
    const template = { metadata: { annotations: { generation: '2' } } };
    await this.#options.site.api.send('PATCH', path, { spec: { template } });
  }

  /** How many pods need a machine. */
  async scalePods(replicas: number): Promise<void> {
    const path = `/apis/apps/v1/namespaces/${this.namespace}/deployments/${WEB}`;
    await this.#options.site.api.send('PATCH', path, { spec: { replicas } });
  }

  /** Waits for the next call that changes something; resolves when it is sent, not when it is answered. */
  async untilAsked(): Promise<void> {
    const before = this.asked.length;
    await eventually(() => this.asked.length > before, {
      timeoutMs: 120_000,
      intervalMs: 10,
      describe: () => `the autoscaler to ask for something; ${this.said.slice(-12).join('; ')}`,
    });
  }

  /** Waits until so many machines run, whatever becomes of others. */
  async untilRunning(count: number): Promise<void> {
    await eventually(
      async () => {
        const machines = await this.#list<Machine>('machines');
        return machines.filter(({ status }) => status?.currentStatus?.phase === 'Running').length === count;
      },
      {
        timeoutMs: 150_000,
        intervalMs: LOOK_MS,
        describe: () => `${count} running machines; ${this.said.slice(-12).join('; ')}`,
      },
    );
  }

  /** Waits until a machine shows that its creation has failed with this code. */
  async untilCreationFails(code: string): Promise<void> {
    await eventually(
      async () => {
        const machines = await this.#list<Machine>('machines');
        return machines.some(({ status }) => status?.lastOperation?.errorCode === code);
      },
      { timeoutMs: 120_000, intervalMs: LOOK_MS, describe: () => `a creation that fails with ${code}` },
    );
  }

  /** How many machines a group is to have. */
  async sizeOf(name: string): Promise<number | undefined> {
    const deployments = await this.#list<MachineDeployment>('machinedeployments');
    return deployments.find(({ metadata }) => metadata.name === name)?.spec.replicas;
  }

  /** Waits until each group has so many machines, all running, and no VM is left over. */
  async untilSizes(sizes: Readonly<Record<string, number>>): Promise<void> {
    const total = Object.values(sizes).reduce((sum, size) => sum + size, 0);
    await eventually(
      async () => {
        if (this.#options.cloud.simulation.cloud.size !== total) return false;
        const machines = await this.#list<Machine>('machines');
        if (machines.length !== total) return false;
        if (machines.some(({ status }) => status?.currentStatus?.phase !== 'Running')) return false;
        const deployments = await this.#list<MachineDeployment>('machinedeployments');
        return deployments.every(({ metadata, spec }) => spec.replicas === (sizes[metadata.name] ?? 0));
      },
      {
        timeoutMs: 150_000,
        intervalMs: LOOK_MS,
        describe: () => `sizes ${JSON.stringify(sizes)}; ${this.said.slice(-12).join('; ')}`,
      },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#options.site.api.request(`/api/v1/namespaces/${this.namespace}`, { method: 'DELETE' });
    await rm(this.#directory, { recursive: true, force: true });
  }

  get #address(): string {
    return `unix://${join(this.#directory, `${this.#managers}.sock`)}`;
  }

  async #list<T>(plural: string): Promise<readonly T[]> {
    const { api } = this.#options.site;
    return (await api.send<{ items: T[] }>('GET', `${GROUP}/namespaces/${this.namespace}/${plural}`)).items;
  }

  #recording(provider: CloudProvider): CloudProvider {
    return new Proxy(provider, {
      get: (target, method: keyof CloudProvider) => {
        const call = (target[method] as (...args: unknown[]) => Promise<unknown>).bind(target);
        if (!MUTATIONS.has(method)) return call;
        return async (group: string, what: number | readonly NodeRef[]) => {
          this.asked.push({ method, group, by: typeof what === 'number' ? what : what.map(({ name }) => name) });
          const isLost = this.losesAnswers && this.asked.length % 2 === 1;
          const answer = await call(group, what);
          if (isLost) throw new Error(`the answer to ${method} is lost`);
          return answer;
        };
      },
    });
  }
}

const MUTATIONS: ReadonlySet<keyof CloudProvider> = new Set(['increaseSize', 'decreaseTargetSize', 'deleteNodes']);

function manifestsOf(namespace: string, groups: Limits): Manifest[] {
  const of = (name: string): { name: string; namespace: string } => ({ name, namespace });
  const secretRef = of('user-data');
  const labels = { app: WEB };
  const resources = { requests: { cpu: '1900m', memory: '1Gi' } };
  return [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: secretRef,
      type: 'Opaque',
      stringData: { userData: 'token: <<BOOTSTRAP_TOKEN>>' },
    },
    ...Object.entries(groups).flatMap(([name, { min, max }]) => [
      {
        apiVersion: API_VERSION,
        kind: 'MachineClass',
        metadata: of(name),
        provider: 'sim',
        providerSpec: { zone: name },
        secretRef,
        nodeTemplate: {
          capacity: { cpu: '4', gpu: '0', memory: '16Gi' },
          instanceType: 'sim',
          region: 'sim',
          zone: name,
        },
      },
      {
        apiVersion: API_VERSION,
        kind: 'MachineDeployment',
        metadata: {
          ...of(name),
          annotations: { [NODE_GROUP_MIN_ANNOTATION]: String(min), [NODE_GROUP_MAX_ANNOTATION]: String(max) },
        },
        spec: {
          replicas: 0,
          selector: { matchLabels: { group: name } },
          strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
          template: {
            metadata: { labels: { group: name } },
            spec: {
              class: { kind: 'MachineClass', name },
              nodeTemplate: { metadata: { labels: { [POOL_LABEL]: namespace } } },
            },
          },
        },
      },
    ]),
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: of(WEB),
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            nodeSelector: { [POOL_LABEL]: namespace },
            terminationGracePeriodSeconds: 0,
            containers: [{ name: 'web', image: 'web', resources }],
          },
        },
      },
    },
  ];
}
