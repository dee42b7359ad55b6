import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';
import type { MachineDeployment } from '../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../apis/machine/v1alpha1/machine-set.ts';
import type { NodeLabelPolicy } from '../apis/machine/v1alpha1/node-label-policy.ts';
import type { ClusterAPICluster } from '../apis/cluster-api/cluster.ts';
import type { ClusterAPIMachine } from '../apis/cluster-api/machine.ts';
import type { IronCoreMachine } from '../apis/ironcore/machine.ts';
import type { IronCoreMachineClass } from '../apis/ironcore/machine-class.ts';
import { POOL_LEASE_NAMESPACE, type IronCoreMachinePool } from '../apis/ironcore/machine-pool.ts';
import type { IronCoreNetwork, IronCoreNetworkInterface } from '../apis/ironcore/network-interface.ts';
import type { IronCoreVolume } from '../apis/ironcore/volume.ts';
import type { KubeObject } from '../apis/meta.ts';
import type { CloudCluster } from '../apis/mirantis/cluster.ts';
import type { ClusterMachine } from '../apis/mirantis/machine.ts';
import type { MachinePool } from '../apis/mirantis/pool.ts';
import type { Lease, Node, VolumeAttachment } from '../apis/wire.ts';
import type { Informer } from '../cache/lister.ts';
import { CLASS_INDEX, classIndex } from '../indexes/class-index.ts';
import {
  CLUSTER_API_MACHINE_INDEXES,
  IRONCORE_MACHINE_INDEXES,
  IRONCORE_NETWORK_INTERFACE_INDEXES,
  IRONCORE_VOLUME_INDEXES,
  MACHINE_INDEXES,
  NODE_INDEXES,
  VOLUME_ATTACHMENT_INDEXES,
} from '../indexes/machine-indexes.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../indexes/owner-index.ts';
import { SECRET_INDEX, secretIndex } from '../indexes/secret-references.ts';
import {
  clusterAPIClusters,
  clusterAPIMachines,
  cloudClusters,
  clusterMachines,
  configMaps,
  customResourceDefinitions,
  ironCoreMachineClasses,
  ironCoreMachinePools,
  ironCoreMachines,
  ironCoreNetworkInterfaces,
  ironCoreNetworks,
  ironCoreVolumes,
  leases as leaseResource,
  machineClasses,
  machineDeployments,
  machinePools,
  machines,
  machineSets,
  nodeLabelPolicies,
  nodes,
  secrets,
  volumeAttachments,
} from '../kube/resource.ts';
import {
  IRONCORE_POOLS_LEASE,
  IRONCORE_SCHEDULER_LEASE,
  MACHINE_LEASE,
  MANAGER_LEASE,
  servesOwnKinds,
} from '../leader/names.ts';
import { roleFiles } from '../preflight/permissions.ts';
import { trimNode, trimVolumeAttachment } from '../targets/trim.ts';
import { ClusterCaches, type ClusterCachesOptions } from './cluster-caches.ts';
import type { Clusters } from './clusters.ts';

/** Which kinds are cached. */
export interface CachesOptions extends Omit<ClusterCachesOptions, 'roleFile'> {
  /** That Machines and their owners are in. */
  readonly namespace: string;
  /** The Leases whose controllers run here. */
  readonly leases: ReadonlySet<string>;
  /** Autoscalers ask what Nodes of a MachineClass would look like. */
  readonly isAutoscaled: boolean;
  /** Machines of Mirantis Container Cloud are served. */
  readonly isMirantis: boolean;
  /** Machines of Cluster API are looked after. */
  readonly isClusterAPI: boolean;
  /** Pools and classes of IronCore are looked after. */
  readonly isIronCoreLifecycle: boolean;
}

/** Gardener's own roles of the machine controllers do not cover them. */
const OWNERS =
  'MachineSets and MachineDeployments: annotation max-replacements is not seen, machines are replaced one at a time';

/** Roles of earlier releases do not cover them where no machine controllers run. */
const CLASSES = 'MachineClasses: autoscalers are not told what new Nodes would look like, and scale nothing from zero';

/** A kind of ours: definitions and roles of others do not have it. */
const POLICIES = 'NodeLabelPolicies: node templates may ask for any label';

/** Definitions and roles of earlier releases do not have them. */
const CLUSTERS = 'Clusters of Mirantis Container Cloud: maintenance waits for none, and they limit no labels';
const SETTINGS = 'ConfigMaps and Secrets of Clusters of Mirantis Container Cloud: settings that change are seen late';
const POOLS = 'MachinePools of Mirantis Container Cloud: no pool is served';

/** All that controllers read from caches, with every index that anybody needs. */
export class Caches {
  /** Of the target cluster; undefined without one. */
  readonly nodes: Informer<Node> | undefined;
  /** Those above that are read from the control cluster, and from the target. */
  readonly ofControl: ClusterCaches;
  readonly ofTarget: ClusterCaches | undefined;
  readonly #machines: Informer<Machine> | undefined;
  readonly #machineSets: Informer<MachineSet> | undefined;
  readonly #machineDeployments: Informer<MachineDeployment> | undefined;
  readonly #labelPolicies: Informer<NodeLabelPolicy> | undefined;
  readonly #clusterMachines: Informer<ClusterMachine> | undefined;
  readonly #configMaps: Informer<KubeObject> | undefined;
  readonly #cloudClusters: Informer<CloudCluster> | undefined;
  readonly #machinePools: Informer<MachinePool> | undefined;
  readonly #clusterAPIMachines: Informer<ClusterAPIMachine> | undefined;
  readonly #clusterAPIClusters: Informer<ClusterAPICluster> | undefined;
  readonly #ironCoreMachines: Informer<IronCoreMachine> | undefined;
  readonly #ironCorePools: Informer<IronCoreMachinePool> | undefined;
  readonly #ironCoreClasses: Informer<IronCoreMachineClass> | undefined;
  readonly #ironCoreVolumes: Informer<IronCoreVolume> | undefined;
  readonly #ironCoreNetworkInterfaces: Informer<IronCoreNetworkInterface> | undefined;
  readonly #ironCoreNetworks: Informer<IronCoreNetwork> | undefined;
  readonly #poolLeases: Informer<Lease> | undefined;
  readonly #definitions: Informer<KubeObject> | undefined;
  readonly #classes: Informer<MachineClass> | undefined;
  readonly #secrets: Informer<KubeObject> | undefined;
  readonly #volumeAttachments: Informer<VolumeAttachment> | undefined;

  constructor(
    clusters: Clusters,
    { namespace, leases, isAutoscaled, isMirantis, isClusterAPI, isIronCoreLifecycle, ...options }: CachesOptions,
  ) {
    const runsMachines = leases.has(MACHINE_LEASE);
    const files = roleFiles(leases);
    const control = new ClusterCaches(clusters.control, { ...options, roleFile: files.control });
    const forOwners = leases.has(MANAGER_LEASE) ? {} : { optionalFor: OWNERS };
    if (servesOwnKinds(leases)) {
      this.#machines = control.add(machines, {
        namespace,
        indexes: { ...MACHINE_INDEXES, [CLASS_INDEX]: classIndex, [CONTROLLER_INDEX]: controllerIndex },
      });
      const indexes = { [CONTROLLER_INDEX]: controllerIndex };
      this.#machineSets = control.add(machineSets, { namespace, indexes, ...forOwners });
      this.#machineDeployments = control.add(machineDeployments, { namespace, ...forOwners });
    }
    if (runsMachines || isAutoscaled || isMirantis) {
      const needed = runsMachines || isMirantis ? {} : { optionalFor: CLASSES };
      this.#classes = control.add(machineClasses, { namespace, indexes: { [SECRET_INDEX]: secretIndex }, ...needed });
    }
    if (isMirantis) {
      this.#clusterMachines = control.add(clusterMachines, { namespace });
      this.#configMaps = control.add<KubeObject>(configMaps, { namespace, metadataOnly: true, optionalFor: SETTINGS });
      this.#cloudClusters = control.add(cloudClusters, { namespace, optionalFor: CLUSTERS });
      this.#machinePools = control.add(machinePools, { namespace, optionalFor: POOLS });
    }
    if (isClusterAPI) {
      this.#clusterAPIMachines = control.add(clusterAPIMachines, { namespace, indexes: CLUSTER_API_MACHINE_INDEXES });
      this.#clusterAPIClusters = control.add(clusterAPIClusters, { namespace });
      this.#definitions = control.add<KubeObject>(customResourceDefinitions, { metadataOnly: true });
    }
    const servesPools = leases.has(IRONCORE_POOLS_LEASE);
    if (leases.has(IRONCORE_SCHEDULER_LEASE) || servesPools) {
      // Of all namespaces: each has its Machines in the pools, which have none.
      this.#ironCoreMachines = control.add(ironCoreMachines, { indexes: IRONCORE_MACHINE_INDEXES });
      this.#ironCorePools = control.add(ironCoreMachinePools);
    }
    if (servesPools) {
      this.#ironCoreVolumes = control.add(ironCoreVolumes, { indexes: IRONCORE_VOLUME_INDEXES });
      this.#ironCoreNetworkInterfaces = control.add(ironCoreNetworkInterfaces, {
        indexes: IRONCORE_NETWORK_INTERFACE_INDEXES,
      });
      this.#ironCoreNetworks = control.add(ironCoreNetworks);
    }
    if (isIronCoreLifecycle || servesPools) this.#ironCoreClasses = control.add(ironCoreMachineClasses);
    if (isIronCoreLifecycle) {
      this.#poolLeases = control.add(leaseResource, { namespace: POOL_LEASE_NAMESPACE });
    }
    if (runsMachines || isMirantis) {
      this.#labelPolicies = control.add(nodeLabelPolicies, { namespace, optionalFor: POLICIES });
    }
    if (runsMachines || isMirantis) {
      const needed = runsMachines ? {} : { optionalFor: SETTINGS };
      this.#secrets = control.add<KubeObject>(secrets, { namespace, metadataOnly: true, ...needed });
    }
    const target = clusters.target && new ClusterCaches(clusters.target, { ...options, roleFile: files.target });
    this.nodes = target?.add(nodes, { indexes: NODE_INDEXES, transform: trimNode });
    if (runsMachines) {
      this.#volumeAttachments = target?.add(volumeAttachments, {
        indexes: VOLUME_ATTACHMENT_INDEXES,
        transform: trimVolumeAttachment,
      });
    }
    this.ofControl = control;
    this.ofTarget = target;
  }

  /** To be started and stopped. */
  get all(): readonly ClusterCaches[] {
    return [this.ofControl, ...(this.ofTarget === undefined ? [] : [this.ofTarget])];
  }

  get machines(): Informer<Machine> {
    return required('Machines', this.#machines);
  }

  /** In a process that runs machine controllers only: not synced while the permissions do not cover it. */
  get machineSets(): Informer<MachineSet> {
    return required('MachineSets', this.#machineSets);
  }

  /** The same. */
  get machineDeployments(): Informer<MachineDeployment> {
    return required('MachineDeployments', this.#machineDeployments);
  }

  get classes(): Informer<MachineClass> {
    return required('MachineClasses', this.#classes);
  }

  /** Of the front end for Mirantis Container Cloud. */
  get clusterMachines(): Informer<ClusterMachine> {
    return required('Machines of cluster.k8s.io', this.#clusterMachines);
  }

  /** Of the same; empty while they are not served. */
  get machinePools(): Informer<MachinePool> {
    return required('MachinePools', this.#machinePools);
  }

  /** Of the same. */
  get cloudClusters(): Informer<CloudCluster> {
    return required('Clusters', this.#cloudClusters);
  }

  /** Of Cluster API. */
  get clusterAPIMachines(): Informer<ClusterAPIMachine> {
    return required('Machines of cluster.x-k8s.io', this.#clusterAPIMachines);
  }

  /** The same. */
  get clusterAPIClusters(): Informer<ClusterAPICluster> {
    return required('Clusters of cluster.x-k8s.io', this.#clusterAPIClusters);
  }

  /** Of IronCore, in all namespaces. */
  get ironCoreMachines(): Informer<IronCoreMachine> {
    return required('Machines of compute.ironcore.dev', this.#ironCoreMachines);
  }

  /** The same. */
  get ironCorePools(): Informer<IronCoreMachinePool> {
    return required('MachinePools of compute.ironcore.dev', this.#ironCorePools);
  }

  /** The same. */
  get ironCoreClasses(): Informer<IronCoreMachineClass> {
    return required('MachineClasses of compute.ironcore.dev', this.#ironCoreClasses);
  }

  /** The same. */
  get ironCoreVolumes(): Informer<IronCoreVolume> {
    return required('Volumes of storage.ironcore.dev', this.#ironCoreVolumes);
  }

  /** The same. */
  get ironCoreNetworkInterfaces(): Informer<IronCoreNetworkInterface> {
    return required('NetworkInterfaces of networking.ironcore.dev', this.#ironCoreNetworkInterfaces);
  }

  /** The same. */
  get ironCoreNetworks(): Informer<IronCoreNetwork> {
    return required('Networks of networking.ironcore.dev', this.#ironCoreNetworks);
  }

  /** By which pools of IronCore show that they are looked after. */
  get poolLeases(): Informer<Lease> {
    return required('Leases of MachinePools', this.#poolLeases);
  }

  /** CustomResourceDefinitions of the control cluster, metadata only. */
  get definitions(): Informer<KubeObject> {
    return required('CustomResourceDefinitions', this.#definitions);
  }

  /** Metadata only. */
  get configMaps(): Informer<KubeObject> {
    return required('ConfigMaps', this.#configMaps);
  }

  get labelPolicies(): Informer<NodeLabelPolicy> {
    return required('NodeLabelPolicies', this.#labelPolicies);
  }

  /** Metadata only. */
  get secrets(): Informer<KubeObject> {
    return required('Secrets', this.#secrets);
  }

  /** Of the target cluster. */
  get volumeAttachments(): Informer<VolumeAttachment> {
    return required('VolumeAttachments', this.#volumeAttachments);
  }
}

function required<T>(kind: string, cached: T | undefined): T {
  if (cached === undefined) throw new Error(`${kind} are not cached where no controller needs them`);
  return cached;
}
