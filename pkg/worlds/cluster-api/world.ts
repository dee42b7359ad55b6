import { clusterAPIClusters, clusterAPIMachines } from './api/resources.ts';
import { clusterAPI, drainRules } from './controllers/index.ts';
import { CLUSTER_API_KINDS, isClusterAPI } from './controllers/kinds.ts';
import type { ServedWorld } from '../../controllers/world.ts';
import { readAnnounced } from './announced.ts';
import { CLUSTER_API_ROLES } from './roles.ts';

export const CLUSTER_API: ServedWorld = {
  name: 'cluster-api',
  kinds: CLUSTER_API_KINDS,
  machines: clusterAPIMachines,
  needs: [clusterAPIMachines, clusterAPIClusters].map((resource) => ({ controller: 'cluster-api', resource })),
  roles: CLUSTER_API_ROLES,
  announced: readAnnounced,
  podRules: (operator) => (isClusterAPI(operator.config) ? drainRules(operator) : undefined),
  controllers: (operator, { rules, ...draining }) =>
    rules === undefined ? [] : [clusterAPI(operator, { ...draining, rules })],
};
