import type { ListedWorld } from '../listed-world.ts';
import { clusterAPIClusters, clusterAPIMachines } from './api/resources.ts';
import { CLUSTER_API_FLAGS } from './controllers/flags.ts';

export const CLUSTER_API_LISTED: ListedWorld = {
  name: 'cluster-api',
  flags: CLUSTER_API_FLAGS,
  load: async () => (await import('./world.ts')).CLUSTER_API,
  described: [
    {
      resource: clusterAPIMachines,
      load: async () => (await import('./describe/machine.ts')).describedClusterAPIMachine,
    },
    {
      resource: clusterAPIClusters,
      load: async () => (await import('./describe/cluster.ts')).describedClusterAPICluster,
    },
  ],
};
