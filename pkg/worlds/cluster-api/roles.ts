import { CLUSTER_API_FLAGS } from './controllers/flags.ts';
import { CLUSTER_API_FILE } from './api/resources.ts';
import { BOOTSTRAP_GROUP, CLUSTER_API_GROUP, CONTROL_PLANE_GROUP, INFRASTRUCTURE_GROUP } from './api/keys.ts';
import { EVENTS, FOLLOW, grant, READ, type Grant, role, type RoleFile } from '../../operator/preflight/roles/role.ts';

/** Which kinds there are depends on the providers. */
function ofProviders(group: string): Grant {
  return grant(group, ['*'], {
    optional: {
      'get, list, watch, patch, delete': `Machines whose objects are in API group ${group} are not reconciled`,
    },
    why: 'The kinds depend on the installed providers. Add the same rule for each provider whose kinds are in another API group.',
  });
}

/** On the objects of a namespace. */
const OBJECTS: readonly Grant[] = [
  grant(CLUSTER_API_GROUP, ['machines'], {
    needed: [...FOLLOW, 'patch', 'delete'],
    why: 'Created by users. The controller adds a finalizer, copies data of the infrastructure, and deletes them with their Cluster.',
  }),
  grant(CLUSTER_API_GROUP, ['clusters'], {
    needed: [...FOLLOW, 'patch'],
    why: 'The controller adds a finalizer and copies data of the infrastructure.',
  }),
  grant(CLUSTER_API_GROUP, ['machines/status', 'clusters/status'], {
    needed: ['patch'],
    why: 'Conditions, phase and addresses.',
  }),
  grant(CLUSTER_API_GROUP, ['machinesets', 'machinedeployments'], {
    optional: { 'list, watch': 'Nodes of outdated revisions do not get a taint' },
    why: 'Reads the revisions of Machines that have such owners.',
  }),
  grant(CLUSTER_API_GROUP, ['machinedrainrules'], {
    optional: { 'list, watch': 'Nodes are not drained if MachineDrainRules exist' },
    why: 'Reads how drains treat pods, if Cluster API defines that kind.',
  }),
  ofProviders(INFRASTRUCTURE_GROUP),
  ofProviders(BOOTSTRAP_GROUP),
  ofProviders(CONTROL_PLANE_GROUP),
];

export const CLUSTER_API_ROLES: readonly RoleFile[] = [
  {
    file: CLUSTER_API_FILE,
    comment:
      'Control cluster, in addition to the roles of the layout: Machines of Cluster API, for --controllers=*,cluster-api. See docs/operations/cluster-api.md.',
    isFor: ({ controllers }) => controllers.has('cluster-api'),
    roles: [
      role('machinist-cluster-api', { place: 'machines' }, OBJECTS),
      role('machinist-cluster-api-namespaces', { cluster: 'target', place: 'cluster', comment: 'Target cluster.' }, [
        grant('', ['namespaces'], {
          optional: { list: 'Nodes are not drained if MachineDrainRules select namespaces by label' },
          why: 'Reads labels of namespaces, because MachineDrainRules can select pods by them.',
          isUsed: ({ hasTarget }) => hasTarget,
        }),
      ]),
      role('machinist-cluster-api-definitions', { place: 'cluster' }, [
        grant('apiextensions.k8s.io', ['customresourcedefinitions'], {
          needed: FOLLOW,
          why: 'Reads the metadata of CustomResourceDefinitions: their labels say in which version the objects of a provider are read.',
        }),
      ]),
    ],
  },
  {
    file: 'deploy/rbac/cluster-api-all-namespaces.yaml',
    comment:
      'Control cluster, in addition to cluster-api.yaml: Machines of Cluster API in all namespaces, for --cluster-api-all-namespaces and for --cells. The role allows reading all Secrets. See docs/operations/cluster-api.md.',
    isFor: ({ controllers, hasCells, of }) =>
      controllers.has('cluster-api') && (hasCells || of(CLUSTER_API_FLAGS).isEverywhere),
    roles: [
      role('machinist-cluster-api-all-namespaces', { place: 'cluster' }, [
        ...OBJECTS,
        grant('', ['secrets'], {
          needed: READ,
          why: 'Listed and watched without data; bootstrap data and kubeconfigs are read when a Machine needs them.',
        }),
        EVENTS,
      ]),
    ],
  },
];
