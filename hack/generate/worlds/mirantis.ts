import { cloudCluster } from '../crds/cloud-cluster.ts';
import { clusterMachine } from '../crds/cluster-machine.ts';
import { machinePool } from '../crds/machine-pool.ts';
import type { GeneratedWorld } from './generated-world.ts';

export const MIRANTIS_GENERATED: GeneratedWorld = { definitions: [cloudCluster, clusterMachine, machinePool] };
