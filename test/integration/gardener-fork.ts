import type { Connection } from '../../hack/control-plane/connection.ts';
import type { Api } from '../../hack/control-plane/api.ts';
import {
  LAST_SCALER_CHANGE_ANNOTATION,
  PRIORITY_ANNOTATION,
  TRIGGER_DELETION_ANNOTATION,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import type { ReflectedInformer } from '../../pkg/kube/cache/reflected-informer.ts';
import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import { machineDeployments, machines, machineSets, nodes } from '../../pkg/kube/client/resource.ts';
import type { Resource } from '../../pkg/apis/resource.ts';
import { eventually } from '../expect/eventually.ts';
import { KubeSession } from './kube-session.ts';

/**
 * How Gardener's cluster-autoscaler asks for Machines to go, by the years.
 *
 * | generation | writes |
 * |---|---|
 * | G1 | priority 1 to each Machine, then the size |
 * | G2 | the same, and takes a priority back when no smaller size followed |
 * | G3 | the size and a list of names at once, then cordons the Nodes |
 * | G4 | the same, with times |
 */
export type Generation = 'G1' | 'G2' | 'G3' | 'G4';

/** An instance, as it is told to the core of the autoscaler. */
export interface ForkInstance {
  readonly id: string;
  readonly state?: 'creating';
  readonly error?: { readonly code: string; readonly message: string };
}

type Fields = Record<string, unknown>;

/** What a Go type knows: members by name; true for all that is below. */
interface Shape {
  readonly [member: string]: true | Shape;
}

/** Of the oldest generation. What is not here, it does not know, and drops. */
const MACHINE_SPEC: Shape = {
  class: true,
  providerID: true,
  nodeTemplate: true,
  drainTimeout: true,
  healthTimeout: true,
  creationTimeout: true,
  maxEvictRetries: true,
  nodeConditions: true,
};
const DEPLOYMENT: Shape = {
  apiVersion: true,
  kind: true,
  metadata: true,
  status: true,
  spec: {
    replicas: true,
    selector: true,
    template: { metadata: true, spec: MACHINE_SPEC },
    strategy: { type: true, rollingUpdate: true },
    minReadySeconds: true,
    revisionHistoryLimit: true,
    paused: true,
    progressDeadlineSeconds: true,
  },
};
const MACHINE: Shape = { apiVersion: true, kind: true, metadata: true, status: true, spec: MACHINE_SPEC };

/** Gardener's cluster-autoscaler with one node group, MachineDeployment `d`: it reads caches, and writes whole objects of its own Go types. */
export class GardenerFork implements AsyncDisposable {
  /** How many of its updates were refused because the object had changed. */
  conflicts = 0;
  /** Done between a look into the cache and the update that follows. */
  beforeUpdate: () => Promise<void> = async () => undefined;
  readonly #generation: Generation;
  readonly #namespace: string;
  readonly #session: KubeSession;
  readonly #api: Api;
  readonly #deployments: ReflectedInformer<MachineDeployment>;
  readonly #sets: ReflectedInformer<MachineSet>;
  readonly #machines: ReflectedInformer<Machine>;
  readonly #nodes: ReflectedInformer<Node>;

  private constructor(generation: Generation, connection: Connection, namespace: string) {
    this.#generation = generation;
    this.#namespace = namespace;
    this.#session = new KubeSession(connection);
    this.#api = connection.api();
    this.#deployments = this.#session.informer(machineDeployments, { namespace });
    this.#sets = this.#session.informer(machineSets, { namespace });
    this.#machines = this.#session.informer(machines, { namespace });
    this.#nodes = this.#session.informer(nodes, {});
  }

  /** Starts; what an earlier one knew is lost. */
  static async start(generation: Generation, connection: Connection, namespace: string): Promise<GardenerFork> {
    const fork = new GardenerFork(generation, connection, namespace);
    const caches = [fork.#deployments, fork.#sets, fork.#machines, fork.#nodes];
    await Promise.all(caches.map((cache) => cache.waitForSync(fork.#session.signal)));
    return fork;
  }

  /** Also in a rollout. */
  async increase(delta: number): Promise<void> {
    await this.#updateDeployment(({ spec }) => (spec.replicas = (spec.replicas ?? 0) + delta));
  }

  /** Refuses while a rollout is on, as it reads the condition. */
  async delete(...names: readonly string[]): Promise<void> {
    if (this.isRolling()) throw new Error('a rollout is on');
    if (this.#generation === 'G1' || this.#generation === 'G2') {
      await this.mark(...names);
      await this.#updateDeployment(({ spec }) => (spec.replicas = (spec.replicas ?? 0) - names.length));
      return;
    }
    await this.#updateDeployment(({ metadata, spec }) => {
      const annotations = (metadata.annotations ??= {});
      const before = (annotations[TRIGGER_DELETION_ANNOTATION] ?? '').split(',').filter((entry) => entry !== '');
      const listed = new Set(before.map((entry) => entry.split('~')[0]));
      const added = names.filter((name) => !listed.has(name));
      const time = toTimestamp(this.#session.clock.now());
      const entries = this.#generation === 'G4' ? added.map((name) => `${name}~${time}`) : added;
      annotations[TRIGGER_DELETION_ANNOTATION] = [...before, ...entries].join(',');
      if (this.#generation === 'G4') annotations[LAST_SCALER_CHANGE_ANNOTATION] = time;
      spec.replicas = (spec.replicas ?? 0) - added.length;
    });
    await this.refresh();
  }

  /** The first of the two writes of the old generations. */
  async mark(...names: readonly string[]): Promise<void> {
    for (const name of names) await this.#prioritize(name, '1');
  }

  /** What it does before each loop. */
  async refresh(): Promise<void> {
    if (this.#generation === 'G2') return this.#takeBackMarks();
    if (this.#generation === 'G1') return;
    const list = this.#deployment().metadata.annotations?.[TRIGGER_DELETION_ANNOTATION] ?? '';
    for (const entry of list.split(',').filter((text) => text !== '')) await this.#cordon(entry.split('~')[0] ?? '');
  }

  isRolling(): boolean {
    const progressing = this.#deployment().status?.conditions?.find(({ type }) => type === 'Progressing');
    if (progressing === undefined) return false;
    const text = `${progressing.status}/${progressing.reason}`;
    return text !== 'True/NewMachineSetAvailable' && text !== 'Unknown/DeploymentPaused';
  }

  /** The Machines of the group, found by label `name`. */
  instances(): readonly ForkInstance[] {
    return this.#machines
      .list()
      .filter(({ metadata }) => metadata.labels?.['name'] === 'd')
      .map((machine) => this.#instanceOf(machine));
  }

  /** Name of the group of a Machine: its first owner's first owner, by name alone. */
  groupOf(name: string): string | undefined {
    const machine = this.#machines.get(`${this.#namespace}/${name}`);
    const set = this.#sets.get(`${this.#namespace}/${machine?.metadata.ownerReferences?.[0]?.name}`);
    return set?.metadata.ownerReferences?.[0]?.name;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#api.close();
    await this.#session[Symbol.asyncDispose]();
  }

  #instanceOf({ metadata, status }: Machine): ForkInstance {
    const node = this.#nodes.get(metadata.labels?.['node'] ?? '');
    if (node !== undefined) return { id: node.spec?.providerID ?? '' };
    const id = `requested://${metadata.name}`;
    const { type, state, errorCode, description = '' } = status?.lastOperation ?? {};
    if (type !== 'Create') return { id };
    if (state !== 'Failed' || errorCode !== 'ResourceExhausted') return { id, state: 'creating' };
    return { id, state: 'creating', error: { code: errorCode, message: description } };
  }

  /** As many as nobody has made room for. */
  async #takeBackMarks(): Promise<void> {
    const living = this.#machines.list().filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const marked = living.filter(({ metadata }) => metadata.annotations?.[PRIORITY_ANNOTATION] === '1');
    const surplus = Math.max(0, living.length - (this.#deployment().spec.replicas ?? 0));
    for (const { metadata } of marked.slice(surplus)) await this.#prioritize(metadata.name, '3');
  }

  async #prioritize(name: string, priority: string): Promise<void> {
    await this.#update(
      machines,
      MACHINE,
      () => this.#machines.get(`${this.#namespace}/${name}`),
      ({ metadata }) => {
        metadata.annotations = { ...metadata.annotations, [PRIORITY_ANNOTATION]: priority };
      },
    );
  }

  async #cordon(name: string): Promise<void> {
    const nodeName = this.#machines.get(`${this.#namespace}/${name}`)?.metadata.labels?.['node'] ?? '';
    if (this.#nodes.get(nodeName)?.spec?.unschedulable === true) return;
    await this.#update(
      nodes,
      undefined,
      () => this.#nodes.get(nodeName),
      (node) => {
        node.spec = { ...node.spec, unschedulable: true };
      },
    );
  }

  async #updateDeployment(change: (deployment: MachineDeployment) => unknown): Promise<void> {
    await this.#update(machineDeployments, DEPLOYMENT, () => this.#deployment(), change);
  }

  #deployment(): MachineDeployment {
    const cached = this.#deployments.get(`${this.#namespace}/d`);
    if (cached === undefined) throw new Error('the group is gone');
    return cached;
  }

  /** A whole object, as cached, changed and written; on a conflict again, when the cache has moved on (it waits for 5 s). */
  async #update<T extends KubeObject>(
    resource: Resource<T>,
    shape: Shape | undefined,
    cached: () => T | undefined,
    change: (object: T) => unknown,
  ): Promise<void> {
    for (;;) {
      const seen = cached();
      if (seen === undefined) return;
      const object = structuredClone<T>(seen);
      change(object);
      await this.beforeUpdate();
      const { group, version, plural } = resource;
      const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}/namespaces/${this.#namespace}`;
      const body = { apiVersion: group === '' ? version : `${group}/${version}`, kind: resource.kind, ...object };
      const answer = await this.#api.request(`${root}/${plural}/${object.metadata.name}`, {
        method: 'PUT',
        body: shape === undefined ? body : asGoWrites(body, shape),
      });
      if (answer.status === 200) return;
      if (answer.status === 404) return;
      if (answer.status !== 409) throw new Error(`PUT ${plural}: ${answer.status} ${JSON.stringify(answer.body)}`);
      this.conflicts += 1;
      const { resourceVersion } = seen.metadata;
      await eventually(() => {
        if (cached()?.metadata.resourceVersion === resourceVersion) throw new Error('the cache has not moved on');
      });
    }
  }
}

/** An object as its Go type is marshalled: without what the type does not know, and with what Go cannot leave out. */
function asGoWrites(object: object, shape: Shape): Fields {
  const known = only(object, shape);
  const spec = known['spec'] as Fields;
  if (spec['replicas'] === 0) delete spec['replicas'];
  const template = spec['template'] as { metadata?: Fields; spec?: Fields } | undefined;
  if (template !== undefined) {
    template.metadata = { creationTimestamp: null, ...template.metadata };
    template.spec = { ...template.spec, ...emptyNodeTemplate(template.spec) };
  } else Object.assign(spec, emptyNodeTemplate(spec));
  return known;
}

function emptyNodeTemplate(spec: Fields = {}): Fields {
  const { metadata, spec: of } = (spec['nodeTemplate'] ?? {}) as { metadata?: Fields; spec?: Fields };
  return { nodeTemplate: { metadata: { creationTimestamp: null, ...metadata }, spec: { ...of } } };
}

function only(object: object, shape: Shape): Fields {
  return Object.fromEntries(
    Object.entries(object)
      .filter(([member]) => shape[member] !== undefined)
      .map(([member, value]: [string, unknown]) => {
        const below = shape[member];
        return [member, below === undefined || below === true ? value : only(value as object, below)];
      }),
  );
}
