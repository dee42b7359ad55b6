import { MADE_FOR_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted, keyBeside, keyOf, type KubeObject } from '../../../apis/meta.ts';
import type { CloudCluster } from '../api/cluster.ts';
import { MIRANTIS_CLUSTER_NAME_LABEL } from '../api/machine.ts';
import { isUnderMaintenance } from '../../../controllers/machine-facts/maintenance.ts';
import { isServed } from './front-end.ts';
import { readCluster } from './cluster-value.ts';
import { areOne, clusterNameOf, MADE_FOR } from './desired-machine.ts';
import type { MirantisCollaborators } from './collaborators.ts';

type Deps = Pick<MirantisCollaborators, 'cloudClusters' | 'clusterMachines' | 'machineDeployments' | 'machines'>;

/** What Machines and pools have to know of their Cluster, and it of them. */
export class MirantisClusters {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  get hasSynced(): boolean {
    return this.#deps.cloudClusters.hasSynced;
  }

  /** The Cluster of a Machine or pool; undefined where there is none that is served, or where nobody knows: nothing follows then. */
  of(holder: KubeObject): CloudCluster | undefined {
    const { cloudClusters } = this.#deps;
    const name = clusterNameOf(holder);
    const cluster = cloudClusters.hasSynced && name !== '' ? cloudClusters.get(keyBeside(holder, name)) : undefined;
    return cluster !== undefined && isServed(cluster) ? cluster : undefined;
  }

  /** Whether rollouts of a Cluster are held: while it asks for maintenance, and until the last of its Machines is out of it. */
  holdsRollouts(cluster: CloudCluster): boolean {
    if (isBeingDeleted(cluster)) return false;
    const { value } = readCluster(cluster);
    if (value?.maintenance === true) return true;
    // What cannot be read ends nothing.
    return isInMaintenance(cluster) && (value === undefined || this.inMaintenance(cluster).length > 0);
  }

  /** Whether Machines of a Cluster may be taken into maintenance now. */
  admitsMaintenance(cluster: CloudCluster): boolean {
    return isInMaintenance(cluster) && readCluster(cluster).value?.maintenance !== false;
  }

  /** Names of the Machines of a Cluster that are in maintenance, on their way there, or on their way back. */
  inMaintenance(cluster: CloudCluster): readonly string[] {
    const { clusterMachines, machines } = this.#deps;
    return clusterMachines
      .list()
      .filter((one) => isIn(one, cluster) && clusterNameOf(one) === cluster.metadata.name)
      .filter((one) => {
        const ours = machines.get(keyOf(one));
        return ours !== undefined && areOne(one, ours) && isUnderMaintenance(ours) && !isBeingDeleted(ours);
      })
      .map(({ metadata: { name } }) => name);
  }

  areRolloutsHeld(cluster: CloudCluster): boolean {
    return this.#deps.machineDeployments
      .list()
      .filter(
        (one) =>
          isIn(one, cluster) &&
          one.metadata.labels?.[MADE_FOR_LABEL] === MADE_FOR &&
          one.spec.template.metadata?.labels?.[MIRANTIS_CLUSTER_NAME_LABEL] === cluster.metadata.name,
      )
      .every((one) => one.spec.paused === true || isBeingDeleted(one));
  }
}

function isInMaintenance({ status }: CloudCluster): boolean {
  return status?.providerStatus?.maintenance === true;
}

function isIn({ metadata }: KubeObject, cluster: CloudCluster): boolean {
  return metadata.namespace === cluster.metadata.namespace;
}
