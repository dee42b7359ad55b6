import type { Machine } from '../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { MachineDeployment } from '../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { NodeLabelPolicy } from '../pkg/apis/machine/v1alpha1/node-label-policy.ts';
import type { MachineSet } from '../pkg/apis/machine/v1alpha1/machine-set.ts';
import { keyOf, type KubeObject } from '../pkg/apis/meta.ts';
import type { ClusterMachine } from '../pkg/apis/mirantis/machine.ts';
import type { CloudCluster } from '../pkg/apis/mirantis/cluster.ts';
import type { MachinePool } from '../pkg/apis/mirantis/pool.ts';
import { ClusterController } from '../pkg/controllers/mirantis/cluster-controller.ts';
import { MirantisClusters } from '../pkg/controllers/mirantis/clusters.ts';
import { ClusterMachineController } from '../pkg/controllers/mirantis/machine-controller.ts';
import { MadeClasses } from '../pkg/controllers/mirantis/made-classes.ts';
import { MirantisPoolController } from '../pkg/controllers/mirantis/pool-controller.ts';
import type { ObjectEvents } from '../pkg/events/event-sink.ts';
import { CLASS_INDEX, classIndex } from '../pkg/indexes/class-index.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../pkg/indexes/owner-index.ts';
import type { Writer } from '../pkg/kube/client.ts';
import { ApiError } from '../pkg/kube/errors.ts';
import {
  cloudClusters,
  clusterMachines,
  configMaps,
  machineClasses,
  machineDeployments,
  machinePools,
  machines,
  machineSets,
  nodeLabelPolicies,
  secrets,
  type Resource,
} from '../pkg/kube/resource.ts';
import { silentLogger } from '../pkg/log/logger.ts';
import { secret } from './builders.ts';
import { clusterSettings } from './cluster-machine.ts';
import { MemoryClient } from './memory-client.ts';
import { MemoryInformer } from './memory-informer.ts';

const never = new AbortController().signal;
const OWNED = { [CONTROLLER_INDEX]: controllerIndex };

/** The front end for Mirantis Container Cloud over the objects of a namespace: what it writes is what it sees next. */
export class FrontEndWorld {
  readonly client = new MemoryClient();
  readonly fronts = new MemoryInformer<ClusterMachine>([]);
  readonly clusters = new MemoryInformer<CloudCluster>([]);
  readonly policies = new MemoryInformer<NodeLabelPolicy>([]);
  readonly pools = new MemoryInformer<MachinePool>([]);
  readonly machines = new MemoryInformer<Machine>([], { [CLASS_INDEX]: classIndex, ...OWNED });
  readonly sets = new MemoryInformer<MachineSet>([], OWNED);
  readonly deployments = new MemoryInformer<MachineDeployment>([]);
  readonly classes = new MemoryInformer<MachineClass>([]);
  /** The Events: `Normal Progress m-1: message`. */
  readonly told: string[] = [];
  /** How many writes still get an answer; those after it are made, and nobody hears of it. */
  answers = Number.POSITIVE_INFINITY;
  readonly #caches: readonly (readonly [Resource<KubeObject>, MemoryInformer<KubeObject>])[];

  constructor() {
    this.#caches = [
      [clusterMachines, this.fronts],
      [machinePools, this.pools],
      [cloudClusters, this.clusters],
      [nodeLabelPolicies, this.policies as unknown as MemoryInformer<KubeObject>],
      [machines, this.machines as unknown as MemoryInformer<KubeObject>],
      [machineSets, this.sets as unknown as MemoryInformer<KubeObject>],
      [machineDeployments, this.deployments as unknown as MemoryInformer<KubeObject>],
      [machineClasses, this.classes as unknown as MemoryInformer<KubeObject>],
    ];
    this.client.put(configMaps, clusterSettings());
    this.client.put(
      secrets,
      secret((s) => void (s.metadata.name = 'cluster-1')),
    );
  }

  /** As if somebody had written it. */
  show<T extends KubeObject>(resource: Resource<T>, object: T): void {
    const shown = { ...object, metadata: { ...object.metadata, resourceVersion: this.client.nextVersion() } };
    this.client.put(resource, shown);
    this.#cacheOf(resource)?.put(shown);
  }

  /** As if somebody had deleted it: an object with finalizers is being deleted. */
  async remove<T extends KubeObject>(resource: Resource<T>, object: T): Promise<void> {
    if ((object.metadata.finalizers ?? []).length > 0) return this.show(resource, going(object));
    await this.client.delete('destroy', resource, namedBy(object), { uid: object.metadata.uid });
    this.client.writes.pop();
    this.#cacheOf(resource)?.remove(keyOf(object));
  }

  /** A pass over a Machine of a process that knows nothing but what is there. */
  async pass(key: string): Promise<unknown> {
    return await new ClusterMachineController({ ...this.#deps(), classes: this.classes, nodes: undefined }).reconcile(
      key,
      never,
    );
  }

  /** The same over a pool. */
  async passOfPool(key: string): Promise<unknown> {
    const { pools: machinePools_, sets, deployments } = this;
    return await new MirantisPoolController({
      ...this.#deps(),
      machinePools: machinePools_,
      machineSets: sets,
      machineDeployments: deployments,
    }).reconcile(key, never);
  }

  /** The same over a Cluster. */
  async passOfCluster(key: string): Promise<unknown> {
    const { clusters, writer, recorder } = this.#deps();
    return await new ClusterController({
      cloudClusters: this.clusters,
      labelPolicies: this.policies,
      clusters,
      writer,
      recorder,
    }).reconcile(key, never);
  }

  /** Passes until nothing is written any more. */
  async settle(pass: () => Promise<unknown>): Promise<void> {
    for (let left = 20; left > 0; left -= 1) {
      const before = this.client.writes.length;
      await pass().catch(() => undefined);
      if (this.client.writes.length === before) return;
    }
    throw new Error('it never comes to rest');
  }

  /** What was created of a kind: `machines/m-1`. */
  made(what: string): readonly string[] {
    return this.client.writes
      .filter((one) => one.verb === 'create' && one.what.startsWith(what))
      .map((one) => one.what);
  }

  #deps() {
    const writer = this.#writer();
    const madeClasses = new MadeClasses({
      classes: this.classes,
      machines: this.machines,
      machineSets: this.sets,
      machineDeployments: this.deployments,
      reader: this.client,
      writer,
    });
    const clusters = new MirantisClusters({
      cloudClusters: this.clusters,
      clusterMachines: this.fronts,
      machineDeployments: this.deployments,
      machines: this.machines,
    });
    return {
      clusters,
      clusterMachines: this.fronts,
      machines: this.machines,
      madeClasses,
      reader: this.client,
      writer,
      targets: { of: () => undefined },
      recorder: {
        event: ({ object, type, reason, message }: EventOf): void =>
          void this.told.push(`${type} ${reason} ${object.metadata.name}: ${message}`),
      },
      log: silentLogger,
    };
  }

  #cacheOf(resource: Pick<Resource<KubeObject>, 'group' | 'plural'>): MemoryInformer<KubeObject> | undefined {
    return this.#caches.find(([{ group, plural }]) => resource.group === group && resource.plural === plural)?.[1];
  }

  #writer(): Writer {
    const answered = (): void => {
      this.answers -= 1;
      if (this.answers < 0) throw new ApiError(0, 'Unreachable', 'the process has died');
    };
    return {
      create: async (intent, resource, object, options) => {
        const made = await this.client.create(intent, resource, object, options);
        this.show(resource, made);
        answered();
        return made;
      },
      patch: async (intent, resource, ref, patch, options) => {
        const patched = await this.client.patch(intent, resource, ref, patch, options);
        const isLetGo = patched.metadata.deletionTimestamp !== undefined && patched.metadata.finalizers?.length === 0;
        if (isLetGo) this.#cacheOf(resource)?.remove(keyOf({ metadata: ref }));
        else this.#cacheOf(resource)?.put(patched);
        answered();
        return patched;
      },
      delete: async (intent, resource, ref, preconditions, options) => {
        const key = keyOf({ metadata: ref });
        const held = this.#cacheOf(resource)?.get(key);
        await this.client.delete(intent, resource, ref, preconditions, options);
        const isKept = (resource === clusterMachines || resource === machinePools) && held !== undefined;
        if (isKept && (held.metadata.finalizers ?? []).length > 0) this.show(resource, going(held) as never);
        else this.#cacheOf(resource)?.remove(key);
        answered();
        return undefined;
      },
      evict: () => Promise.reject(new Error('evicts nothing')),
    };
  }
}

type EventOf = Parameters<ObjectEvents<KubeObject>['event']>[0];

/** The same object, being deleted. */
export function going<T extends KubeObject>(object: T): T {
  const { deletionTimestamp = '2026-01-02T00:00:00Z' } = object.metadata;
  return { ...object, metadata: { ...object.metadata, deletionTimestamp } };
}

function namedBy({ metadata: { namespace = '', name } }: KubeObject): { namespace: string; name: string } {
  return { namespace, name };
}
