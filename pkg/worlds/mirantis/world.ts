import { cloudClusters, clusterMachines, machinePools } from './api/resources.ts';
import { mirantis } from './controllers/index.ts';
import { isMirantis, MIRANTIS_KINDS, WITHOUT_SETTINGS } from './controllers/kinds.ts';
import type { ServedWorld } from '../../controllers/world.ts';
import { LOST_WITHOUT_CLUSTERS, LOST_WITHOUT_POOLS, MIRANTIS_ROLES } from './roles.ts';

export const MIRANTIS: ServedWorld = {
  name: 'mirantis',
  kinds: MIRANTIS_KINDS,
  alsoReads: (process) =>
    isMirantis(process) ? { classes: {}, labelPolicies: {}, secrets: { optionalFor: WITHOUT_SETTINGS } } : {},
  needs: [
    { controller: 'mirantis', resource: clusterMachines },
    { controller: 'mirantis', resource: cloudClusters, lost: LOST_WITHOUT_CLUSTERS },
    { controller: 'mirantis', resource: machinePools, lost: LOST_WITHOUT_POOLS },
  ],
  roles: MIRANTIS_ROLES,
  controllers: (operator) => (isMirantis(operator.config) ? [mirantis(operator)] : []),
};
