import type { MergePatch } from '../../pkg/kube/client/patch.ts';
import type { Connection } from '../../hack/control-plane/connection.ts';
import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { MachinePhase } from '../../pkg/apis/machine/v1alpha1/phases.ts';
import { isBeingDeleted, keyOf, refOf } from '../../pkg/apis/meta.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { ReflectedInformer } from '../../pkg/kube/cache/reflected-informer.ts';
import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import type { Occurrence } from '../../pkg/kube/events/correlator.ts';
import { ApiError, isAlreadyExists, isConflict, isNotFound } from '../../pkg/kube/client/errors.ts';
import { mergePatch, mergePatchIfUnchanged, statusPatch, strategicPatch } from '../../pkg/kube/client/patch.ts';
import { machineDeployments, machines, machineSets, nodes } from '../../pkg/kube/client/resource.ts';
import type { Resource } from '../../pkg/apis/resource.ts';
import { apiServer, type TestServer } from '../env/api-server.ts';
import { namespace } from '../env/environment.ts';
import type { TestNamespace } from '../env/environment.ts';
import { KubeSession } from './kube-session.ts';
import { OperatorSession, type OperatorSessionOptions } from './operator-session.ts';

/** Name of the target cluster, as the gate is asked about it; it is the same server. */
export const TARGET = 'target';

/** How the stand-in for the machine controller behaves. */
export interface StandInOptions {
  /** How long a Machine takes to run, and to go. */
  readonly startMs?: number;
  readonly stopMs?: number;
  /** Whether each Machine gets a Node. */
  readonly withNodes?: boolean;
  /** Whether its Node has a providerID. */
  readonly withProviderIDs?: boolean;
  /** Whether a Machine ever runs; all do unless told otherwise. */
  readonly comesUp?: (machine: Machine) => boolean;
  /** Whether a deleted Machine ever goes; all do unless told otherwise. */
  readonly goes?: (machine: Machine) => boolean;
  /** Flags of the manager. */
  readonly flags?: Readonly<Record<string, string>>;
  /** Done before the first manager starts. */
  readonly before?: (world: MachineSetWorld) => Promise<void>;
  /** The MachineDeployment controller does not run: its sets keep the sizes that they have. */
  readonly withoutDeployments?: boolean;
}

const ALL = (): boolean => true;

/** What was alive at one moment, as the watch told it. */
export interface Moment {
  readonly existing: number;
  readonly available: number;
}

/**
 * The sets and deployments controllers on an API server, real or simulated, in a namespace of their own, beside a stand-in for the
 * machine controller that moves Machines to Running and lets deleted ones go: what is left out is only the cloud.
 */
export class MachineSetWorld implements AsyncDisposable {
  readonly connection: Connection;
  readonly namespace: TestNamespace;
  /** Does what users do, and watches. */
  readonly user: KubeSession;
  readonly machines: ReflectedInformer<Machine>;
  /** Every state that the watch showed. */
  readonly moments: Moment[] = [];
  readonly events: Occurrence[] = [];
  readonly #standIn: StandInOptions;
  readonly #server: TestServer;
  readonly #timers = new Set<NodeJS.Timeout>();
  /** What has been started for which UID. */
  readonly #driven = new Set<string>();
  #manager: OperatorSession | undefined;

  private constructor(ns: TestNamespace, standIn: StandInOptions, server: TestServer) {
    const { connection } = server;
    this.connection = connection;
    this.namespace = ns;
    this.#standIn = standIn;
    this.#server = server;
    this.user = new KubeSession(connection);
    this.machines = this.user.informer(machines, { namespace: ns.name });
  }

  /** A running world; `await using world = await MachineSetWorld.start()`. Without a connection, the server of the test is drawn. */
  static async start(standIn: StandInOptions = {}, given?: Connection): Promise<MachineSetWorld> {
    const server = await apiServer(given);
    const world = new MachineSetWorld(await namespace(server.connection), standIn, server);
    await world.machines.waitForSync(world.user.signal);
    world.machines.onChange((_old, current) => {
      world.moments.push(momentOf(world.machines.list()));
      if (current !== undefined) world.#drive(current);
    });
    await standIn.before?.(world);
    await world.startManager();
    return world;
  }

  /** The manager's client; its requests can be counted. */
  get manager(): OperatorSession {
    if (this.#manager === undefined) throw new Error('no manager runs');
    return this.#manager;
  }

  /** How many of the manager's requests succeeded; the others met a change of somebody else. */
  succeeded(verb: 'create' | 'delete', resource: string): number {
    const { requests } = this.manager;
    return requests.filter((r) => r.verb === verb && r.resource === resource && (r.code ?? 0) < 300).length;
  }

  /** Starts a manager, as after a crash: nothing but the API server knows what the one before did. */
  async startManager(hooks: OperatorSessionOptions['hooks'] = {}): Promise<void> {
    this.#manager = await OperatorSession.start({
      connection: this.connection,
      namespace: this.namespace.name,
      controllers: this.#standIn.withoutDeployments === true ? 'machine-set' : 'machine-set,machine-deployment',
      flags: { 'autoscaler-scaledown-annotation-during-rollout': 'true', ...this.#standIn.flags },
      hooks: { recorder: { record: (occurrence) => this.events.push(occurrence) }, ...hooks },
    });
  }

  /** Starts a manager that dies after `most` writes; the answer to the last one may be lost. `writes`: how many it has tried. */
  async startMortalManager(most: number, losesAnswer = false): Promise<{ readonly writes: number }> {
    const tried = { writes: 0 };
    await this.startManager({
      intercept: async (_mutation, send) => {
        if (++tried.writes > most) throw new ApiError(0, 'Unreachable', 'the process is gone');
        const answer = await send();
        if (losesAnswer && tried.writes === most) throw new ApiError(0, 'Unreachable', 'the answer is lost');
        return answer;
      },
    });
    return tried;
  }

  /** Ends the manager between two writes. */
  async killManager(): Promise<void> {
    await this.#manager?.[Symbol.asyncDispose]();
    this.#manager = undefined;
  }

  /** A set of `replicas`, with changes. */
  createSet(
    replicas: number,
    change: (set: Pick<MachineSet, 'metadata' | 'spec'>) => void = () => undefined,
  ): Promise<MachineSet> {
    const labels = { set: 's' };
    const set = {
      metadata: { name: 's', namespace: this.namespace.name },
      spec: { replicas, selector: { matchLabels: labels }, template: templateOf(labels) },
    };
    change(set as unknown as MachineSet); // the server fills in the rest of the metadata
    return this.user.writer.create('create', machineSets, set);
  }

  /** A rolling deployment of `replicas`, with changes. */
  createDeployment(
    replicas: number,
    change: (deployment: Pick<MachineDeployment, 'metadata' | 'spec'>) => void = () => undefined,
  ): Promise<MachineDeployment> {
    const labels = { pool: 'd' };
    const deployment = {
      metadata: { name: 'd', namespace: this.namespace.name },
      spec: {
        replicas,
        selector: { matchLabels: labels },
        template: templateOf(labels),
        strategy: { type: 'RollingUpdate' as const, rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      },
    };
    change(deployment as unknown as MachineDeployment); // the server fills in the rest of the metadata
    return this.user.writer.create('create', machineDeployments, deployment);
  }

  /** What the API server has now. */
  async get<T extends KubeObject>(resource: Resource<T>, name: string): Promise<T> {
    return this.user.reader.get(resource, { namespace: this.namespace.name, name });
  }

  async list<T extends KubeObject>(resource: Resource<T>): Promise<T[]> {
    return (await this.user.reader.list(resource, { namespace: this.namespace.name })).items;
  }

  /** Changes an object as a user would. */
  async patch<T extends KubeObject>(resource: Resource<T>, name: string, change: MergePatch<T>): Promise<T> {
    const object = await this.get(resource, name);
    return this.user.writer.patch(
      'change',
      resource,
      { namespace: this.namespace.name, name },
      mergePatch(object, change),
    );
  }

  async delete<T extends KubeObject>(resource: Resource<T>, name: string): Promise<void> {
    const { uid } = (await this.get(resource, name)).metadata;
    await this.user.writer.delete('destroy', resource, { namespace: this.namespace.name, name }, { uid });
  }

  /** Moves a Machine to a phase, as the machine controller would. */
  async setPhase(
    name: string,
    phase: MachinePhase,
    lastOperation: object = { type: 'HealthCheck', state: 'Failed' },
  ): Promise<void> {
    await unlessOvertaken(async () => this.#setPhase(await this.get(machines, name), phase, lastOperation));
  }

  /** Makes the Node of a Machine Ready, as its kubelet would. */
  async setReady(name: string): Promise<void> {
    const node = await this.user.reader.get(nodes, { name });
    const now = toTimestamp(this.user.clock.now());
    const ready = {
      type: 'Ready',
      status: 'True',
      reason: 'KubeletReady',
      lastHeartbeatTime: now,
      lastTransitionTime: now,
    };
    // Others write Nodes too.
    const patch = strategicPatch(node, { status: { conditions: [ready] } }, 'status');
    await this.user.writer.patch('change', nodes, { name }, patch);
  }

  /** Makes a Machine run, as its VM would. */
  async bringUp(machine: Machine): Promise<void> {
    if (this.#standIn.withNodes === true) await this.#addNode(machine);
    await unlessOvertaken(async () => {
      const latest = await this.get(machines, machine.metadata.name);
      if (isBeingDeleted(latest)) return;
      await this.#setPhase(latest, 'Running', { type: 'Create', state: 'Successful' });
    });
  }

  /** Machines that live: nobody has asked for their deletion. */
  living(): Machine[] {
    return this.machines.list().filter((machine) => !isBeingDeleted(machine));
  }

  /** Living Machines that run. */
  running(): Machine[] {
    return this.living().filter((machine) => machine.status?.currentStatus?.phase === 'Running');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.killManager();
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#clear();
    await this.user[Symbol.asyncDispose]();
    await this.namespace[Symbol.asyncDispose]();
    await this.#server[Symbol.asyncDispose]();
  }

  #drive(machine: Machine): void {
    const { startMs = 0, stopMs = 0, withNodes = false, comesUp = ALL, goes = ALL } = this.#standIn;
    const turn = `${machine.metadata.uid} ${isBeingDeleted(machine) ? 'stop' : 'start'}`;
    if (this.#driven.has(turn)) return;
    this.#driven.add(turn);
    if (isBeingDeleted(machine)) {
      if (!goes(machine)) return;
      this.#after(stopMs, async () => {
        // A Machine that never came up has none.
        if (withNodes) await this.#removeNode(machine).catch(ignoreLate);
        await this.#patchIfThere(machine, { metadata: { finalizers: [] } });
      });
      return;
    }
    if (!comesUp(machine)) return;
    this.#after(startMs, () => this.bringUp(machine));
  }

  #after(delayMs: number, run: () => Promise<void>): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      run().catch((err: unknown) => {
        if (isConflict(err)) this.#after(5, run);
        else if (!isNotFound(err) && !this.user.signal.aborted) throw err;
      });
    }, delayMs);
    this.#timers.add(timer);
  }

  async #setPhase(machine: Machine, phase: MachinePhase, lastOperation: object): Promise<void> {
    const now = toTimestamp(this.user.clock.now());
    const patch = statusPatch(machine, {
      currentStatus: { phase, lastUpdateTime: now },
      lastOperation: { ...lastOperation, lastUpdateTime: now, description: phase },
    });
    await this.user.writer.patch('change', machines, refOf(machine), patch);
  }

  async #patchIfThere(machine: Machine, change: Record<string, unknown>): Promise<void> {
    await this.user.writer.patch('change', machines, refOf(machine), mergePatch(machine, change));
  }

  async #addNode(machine: Machine): Promise<void> {
    const { name } = machine.metadata;
    const spec = this.#standIn.withProviderIDs === true ? { providerID: `cloud:///${name}` } : {};
    const node = { metadata: { name, labels: { world: this.namespace.name } }, spec };
    await this.user.writer.create('create', nodes, node).catch((err: unknown) => {
      if (!isAlreadyExists(err)) throw err; // brought up again, after a conflict
    });
    await this.#patchIfThere(machine, { metadata: { labels: { node: name } } });
  }

  async #removeNode(machine: Machine): Promise<void> {
    const node = await this.user.reader.get(nodes, { name: machine.metadata.name });
    await this.user.writer.delete('destroy', nodes, { name: node.metadata.name }, { uid: node.metadata.uid });
  }

  /** Finalizers would keep the namespace forever. */
  async #clear(): Promise<void> {
    const kinds: readonly Resource<KubeObject>[] = [machineDeployments, machineSets, machines];
    for (const resource of kinds) {
      for (const object of await this.list(resource)) {
        const ref = refOf(object);
        const none = mergePatchIfUnchanged({ metadata: { ...object.metadata } }, { metadata: { finalizers: [] } });
        await this.user.writer.patch('change', resource, ref, none).catch(ignoreLate);
        await this.user.writer.delete('destroy', resource, ref, { uid: object.metadata.uid }).catch(ignoreLate);
      }
    }
    const mine = await this.user.reader.list(nodes, { labelSelector: `world=${this.namespace.name}` });
    for (const { metadata } of mine.items) {
      await this.user.writer.delete('destroy', nodes, { name: metadata.name }, { uid: metadata.uid }).catch(ignoreLate);
    }
  }
}

function momentOf(list: readonly Machine[]): Moment {
  const available = list.filter((m) => !isBeingDeleted(m) && m.status?.currentStatus?.phase === 'Running');
  return { existing: list.length, available: available.length };
}

function templateOf(labels: Record<string, string>): NonNullable<MachineSet['spec']['template']> {
  return { metadata: { labels: { ...labels } }, spec: { class: { kind: 'MachineClass', name: 'c' } } };
}

/** Does again what begins with a look, for as long as others write between the look and the write. */
async function unlessOvertaken(write: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await write();
    } catch (err) {
      if (!isConflict(err)) throw err;
    }
  }
}

function ignoreLate(err: unknown): void {
  if (!isNotFound(err) && !isConflict(err)) throw err;
}

/** The reference of a set, as the server shows it. */
export function isOwnedBy(machine: Machine, set: MachineSet): boolean {
  return (machine.metadata.ownerReferences ?? []).some(
    ({ apiVersion, uid, controller }) => apiVersion === API_VERSION && uid === set.metadata.uid && controller === true,
  );
}

/** `namespace/name` of each, in order. */
export function keysOf(objects: readonly KubeObject[]): string[] {
  return objects.map(keyOf).toSorted();
}
