import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import type { NodeLabelPolicy } from '../../../apis/machine/v1alpha1/node-label-policy.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { Logger } from '../../../base/log/logger.ts';
import type { Informer, Lister } from '../../../kube/cache/lister.ts';
import type { Reader, Writer } from '../../../kube/client/client.ts';
import type { Targets } from '../../../kube/targets/targets.ts';
import type { CloudCluster } from '../api/cluster.ts';
import type { ClusterMachine } from '../api/machine.ts';
import type { MachinePool } from '../api/pool.ts';
import type { MirantisClusters } from './clusters.ts';
import type { GeneratedClasses } from './generated-classes.ts';

/** What the controllers of the front end work with; each part names what it needs of it. */
export interface MirantisCollaborators {
  readonly clusterMachines: Informer<ClusterMachine>;
  readonly machinePools: Informer<MachinePool>;
  readonly cloudClusters: Informer<CloudCluster>;
  /** With the indexes CLASS_INDEX and CONTROLLER_INDEX. */
  readonly machines: Informer<Machine>;
  /** With the index CONTROLLER_INDEX. */
  readonly machineSets: Lister<MachineSet>;
  readonly machineDeployments: Informer<MachineDeployment>;
  readonly classes: Lister<MachineClass>;
  readonly labelPolicies: Informer<NodeLabelPolicy>;
  /** Metadata only, as `secrets`. */
  readonly configMaps: Informer<KubeObject>;
  readonly secrets: Informer<KubeObject>;
  readonly clusters: MirantisClusters;
  readonly madeClasses: GeneratedClasses;
  /** Live reads: settings of Clusters, and whether something is gone. */
  readonly reader: Reader;
  readonly writer: Writer;
  readonly targets: Pick<Targets, 'of'>;
  readonly log: Logger;
}
