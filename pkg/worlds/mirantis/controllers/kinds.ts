import type { KubeObject } from '../../../apis/meta.ts';
import { configMaps } from '../../../kube/client/resource.ts';
import { cloudClusters, clusterMachines, machinePools } from '../api/resources.ts';
import { cached, type CachingProcess } from '../../../operator/cached/kind.ts';

/** What is lost where roles of earlier releases do not cover the objects that Clusters take their settings from. */
export const WITHOUT_SETTINGS =
  'ConfigMaps and Secrets of Clusters of Mirantis Container Cloud: changes of settings are noticed with a delay';

/** Definitions and roles of earlier releases do not have them. */
const CLUSTERS =
  'Clusters of Mirantis Container Cloud: maintenance does not wait for them, and they do not restrict labels';
const POOLS = 'MachinePools of Mirantis Container Cloud: pools are not served';

export const isMirantis = ({ controllers }: Pick<CachingProcess, 'controllers'>): boolean =>
  controllers.has('mirantis');

export const MIRANTIS_KINDS = {
  clusterMachines: cached(clusterMachines, (process) =>
    isMirantis(process) ? { namespace: process.namespace } : undefined,
  ),
  /** Metadata only. */
  configMaps: cached<KubeObject>(configMaps, (process) =>
    isMirantis(process)
      ? { namespace: process.namespace, metadataOnly: true, optionalFor: WITHOUT_SETTINGS }
      : undefined,
  ),
  cloudClusters: cached(cloudClusters, (process) =>
    isMirantis(process) ? { namespace: process.namespace, optionalFor: CLUSTERS } : undefined,
  ),
  /** Empty while they are not served. */
  machinePools: cached(machinePools, (process) =>
    isMirantis(process) ? { namespace: process.namespace, optionalFor: POOLS } : undefined,
  ),
};
