import type { Machine } from '../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { MachineDeployment } from '../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { NodeLabelPolicy } from '../pkg/apis/machine/v1alpha1/node-label-policy.ts';
import type { MachineSet } from '../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { KubeObject } from '../pkg/apis/meta.ts';
import type { ClusterMachine } from '../pkg/worlds/mirantis/api/machine.ts';
import type { CloudCluster } from '../pkg/worlds/mirantis/api/cluster.ts';
import type { MachinePool } from '../pkg/worlds/mirantis/api/pool.ts';
import { ClusterController } from '../pkg/worlds/mirantis/controllers/cluster-controller.ts';
import { MirantisClusters } from '../pkg/worlds/mirantis/controllers/clusters.ts';
import { ClusterMachineController } from '../pkg/worlds/mirantis/controllers/machine-controller.ts';
import { GeneratedClasses } from '../pkg/worlds/mirantis/controllers/generated-classes.ts';
import { MirantisPoolController } from '../pkg/worlds/mirantis/controllers/pool-controller.ts';
import type { ObjectEvents } from '../pkg/kube/events/event-sink.ts';
import { CLASS_INDEX, classIndex } from '../pkg/operator/indexes/class-index.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../pkg/operator/indexes/owner-index.ts';
import type { Writer } from '../pkg/kube/client/client.ts';
import { ApiError } from '../pkg/kube/client/errors.ts';
import {
  configMaps,
  machineClasses,
  machineDeployments,
  machines,
  machineSets,
  nodeLabelPolicies,
  secrets,
} from '../pkg/kube/client/resource.ts';
import type { Resource } from '../pkg/apis/resource.ts';
import { cloudClusters, clusterMachines, machinePools } from '../pkg/worlds/mirantis/api/resources.ts';
import { silentLogger } from '../pkg/base/log/logger.ts';
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

  constructor() {
    const { client } = this;
    client.shows(clusterMachines, this.fronts);
    client.shows(machinePools, this.pools);
    client.shows(cloudClusters, this.clusters);
    client.shows(nodeLabelPolicies, this.policies);
    client.shows(machines, this.machines);
    client.shows(machineSets, this.sets);
    client.shows(machineDeployments, this.deployments);
    client.shows(machineClasses, this.classes);
    this.client.put(configMaps, clusterSettings());
    this.client.put(
      secrets,
      secret((s) => void (s.metadata.name = 'cluster-1')),
    );
  }

  /** As if somebody had deleted it: an object with finalizers is being deleted. */
  remove<T extends KubeObject>(resource: Resource<T>, object: T): void {
    if ((object.metadata.finalizers ?? []).length > 0) this.client.wrote(resource, going(object));
    else this.client.deleted(resource, object.metadata);
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
    const madeClasses = new GeneratedClasses({
      classes: this.classes,
      machines: this.machines,
      machineSets: this.sets,
      machineDeployments: this.deployments,
      reader: this.client,
      writer,
      log: silentLogger,
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

  /** The client, of a process that dies after `answers` writes. */
  #writer(): Writer {
    const answered = async <T>(write: Promise<T>): Promise<T> => {
      const answer = await write;
      this.answers -= 1;
      if (this.answers < 0) throw new ApiError(0, 'Unreachable', 'the process has died');
      return answer;
    };
    const { client } = this;
    return {
      create: (...args) => answered(client.create(...args)),
      patch: (...args) => answered(client.patch(...args)),
      delete: async (intent, resource, ref, ...rest) => {
        const left = await answered(client.delete(intent, resource, ref, ...rest));
        // The controllers of its own kinds are not here: what is deleted goes at once.
        if (resource.group === machines.group) client.deleted(resource, ref);
        return left;
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
