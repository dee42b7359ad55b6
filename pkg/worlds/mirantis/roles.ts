import { MIRANTIS_FILE } from './api/resources.ts';
import { GROUP } from '../../apis/machine/v1alpha1/group.ts';
import { CLUSTER_GROUP } from './api/machine.ts';
import { KAAS_GROUP } from './api/pool.ts';
import { FOLLOW, grant, type Grant, role, type RoleFile } from '../../operator/preflight/roles/role.ts';

/** What does not work without the kinds that the front end can do without. */
export const LOST_WITHOUT_CLUSTERS = 'maintenance does not wait for Clusters, and Clusters do not restrict labels';
/** The same of MachinePools. */
export const LOST_WITHOUT_POOLS = 'MachinePools are not served';

/** On the objects of a namespace. */
const OBJECTS: readonly Grant[] = [
  grant(CLUSTER_GROUP, ['machines'], {
    needed: [...FOLLOW, 'patch', 'delete'],
    optional: { create: LOST_WITHOUT_POOLS },
    why: 'Created by users, or by the controller for a pool. The controller adds a finalizer and annotations, and deletes them after their underlying Machine is gone.',
  }),
  grant(CLUSTER_GROUP, ['machines/status'], { needed: ['patch'], why: 'Reports their state.' }),
  grant(CLUSTER_GROUP, ['clusters'], {
    optional: { 'list, watch': LOST_WITHOUT_CLUSTERS },
    why: 'Reads settings, and whether Machines may enter maintenance.',
  }),
  grant(CLUSTER_GROUP, ['clusters/status'], {
    optional: { patch: LOST_WITHOUT_CLUSTERS },
    why: 'Reports whether their Machines may enter maintenance.',
  }),
  grant(GROUP, ['nodelabelpolicies'], {
    optional: { 'list, watch, create, patch, delete': LOST_WITHOUT_CLUSTERS },
    why: 'Created from the labels that Clusters allow.',
  }),
  grant(KAAS_GROUP, ['machinepools'], {
    optional: { 'list, watch, patch': LOST_WITHOUT_POOLS },
    why: 'Adds a finalizer, and stores the number of replicas that an autoscaler has set.',
  }),
  grant(KAAS_GROUP, ['machinepools/status'], {
    optional: { patch: LOST_WITHOUT_POOLS },
    why: 'Reports the number of their Machines.',
  }),
  grant(GROUP, ['machinedeployments'], {
    optional: { 'create, delete': LOST_WITHOUT_POOLS },
    why: 'Created for pools, and deleted with them.',
  }),
  grant(GROUP, ['machineclasses'], {
    needed: [...FOLLOW, 'create', 'delete'],
    why: 'Created for these Machines, and deleted when no Machine uses them.',
  }),
  grant('', ['configmaps', 'secrets'], {
    needed: ['get'],
    optional: { 'list, watch': 'changes of Cluster settings are noticed with a delay' },
    why: 'Reads settings of Clusters, and only the metadata of the Secrets with their credentials.',
  }),
];

export const MIRANTIS_ROLES: readonly RoleFile[] = [
  {
    file: MIRANTIS_FILE,
    comment:
      'Control cluster, in addition to the roles of the layout: front end for Mirantis Container Cloud, for --controllers=*,mirantis. See docs/operations/mirantis.md.',
    isFor: ({ controllers }) => controllers.has('mirantis'),
    roles: [role('machinist-mirantis', { place: 'machines' }, OBJECTS)],
  },
  {
    file: 'deploy/rbac/mirantis-all-namespaces.yaml',
    comment:
      'Control cluster, in addition to mirantis.yaml: front end for Mirantis Container Cloud in all namespaces, for --cells. The role allows reading all Secrets and ConfigMaps. See docs/operations/mirantis.md.',
    isFor: ({ controllers, hasCells }) => controllers.has('mirantis') && hasCells,
    roles: [role('machinist-mirantis-all-namespaces', { place: 'cluster' }, OBJECTS)],
  },
];
