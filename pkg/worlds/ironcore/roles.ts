import { COMPUTE_GROUP, IPAM_GROUP, NETWORKING_GROUP, STORAGE_GROUP } from './api/group.ts';
import { POOL_LEASE_NAMESPACE } from './api/machine-pool.ts';
import { IRONCORE_POOLS_LEASE, IRONCORE_SCHEDULER_LEASE } from './controllers/leases.ts';
import { EVENTS, FOLLOW, leaseGrants, READ, type RoleFile } from '../../operator/preflight/roles/role.ts';

export const SCHEDULER_FILE = 'deploy/rbac/ironcore-scheduler.yaml';
export const POOLS_FILE = 'deploy/rbac/ironcore-pools.yaml';

const SHOWS_LIFE = 'Renewed for each pool, to show that a controller serves it.';

export const IRONCORE_ROLES: readonly RoleFile[] = [
  {
    file: SCHEDULER_FILE,
    comment:
      'Control cluster: scheduler of IronCore Machines, on its own with --controllers=ironcore.scheduler, or in addition to the roles of the layout with --controllers=*,ironcore. See docs/operations/ironcore.md.',
    isFor: ({ leases }) => leases.has(IRONCORE_SCHEDULER_LEASE),
    roles: [
      {
        name: 'machinist-ironcore-scheduler',
        place: 'cluster',
        grants: [
          {
            group: COMPUTE_GROUP,
            resources: ['machines'],
            needed: [...FOLLOW, 'patch'],
            why: 'Assigns Machines to pools. Pools are not namespaced and are shared by the Machines of all namespaces.',
          },
          {
            group: COMPUTE_GROUP,
            resources: ['machines/status'],
            needed: ['patch'],
            why: 'Reports why a Machine is not scheduled.',
          },
          { group: COMPUTE_GROUP, resources: ['machinepools'], needed: FOLLOW, why: 'Reads the capacity of pools.' },
          EVENTS,
        ],
      },
      {
        name: 'machinist-ironcore-scheduler',
        place: 'leases',
        grants: leaseGrants(IRONCORE_SCHEDULER_LEASE),
      },
    ],
  },
  {
    file: 'deploy/rbac/ironcore-lifecycle.yaml',
    comment:
      'Control cluster, in addition to ironcore-scheduler.yaml: pools and classes of IronCore, for --controllers=*,ironcore. See docs/operations/ironcore.md.',
    namespace: POOL_LEASE_NAMESPACE,
    isFor: ({ controllers }) => controllers.has('ironcore.lifecycle'),
    roles: [
      {
        name: 'machinist-ironcore-lifecycle',
        place: 'cluster',
        grants: [
          {
            group: COMPUTE_GROUP,
            resources: ['machines'],
            optional: { delete: 'taints of MachinePools do not evict Machines' },
            why: 'Evicts Machines because of a taint of their pool.',
          },
          {
            group: COMPUTE_GROUP,
            resources: ['machinepools'],
            optional: { get: 'taints of MachinePools do not evict Machines' },
            why: 'Checks whether that taint still exists.',
          },
          {
            group: COMPUTE_GROUP,
            resources: ['machinepools/status'],
            needed: ['patch'],
            why: 'Reports pools that no controller serves.',
          },
          {
            group: COMPUTE_GROUP,
            resources: ['machineclasses'],
            needed: [...FOLLOW, 'patch'],
            why: 'Adds a finalizer while Machines use the class.',
          },
        ],
      },
      {
        name: 'machinist-ironcore-lifecycle',
        place: { namespace: POOL_LEASE_NAMESPACE },
        grants: [{ group: 'coordination.k8s.io', resources: ['leases'], needed: READ, why: SHOWS_LIFE }],
      },
    ],
  },
  {
    file: POOLS_FILE,
    comment:
      'Control cluster: pools of IronCore that --ironcore-pool serves. Sufficient for --controllers=ironcore.pools; with other controllers, in addition to the roles of the layout. See docs/operations/ironcore.md.',
    namespace: POOL_LEASE_NAMESPACE,
    isFor: ({ leases }) => leases.has(IRONCORE_POOLS_LEASE),
    roles: [
      {
        name: 'machinist-ironcore-pools',
        place: 'cluster',
        grants: [
          {
            group: COMPUTE_GROUP,
            resources: ['machinepools'],
            needed: [...FOLLOW, 'create'],
            why: 'Created if it does not exist; its labels and taints belong to the administrator.',
          },
          {
            group: COMPUTE_GROUP,
            resources: ['machinepools/status'],
            needed: ['patch'],
            why: 'Reports the readiness and the capacity of the pool.',
          },
          {
            group: COMPUTE_GROUP,
            resources: ['machineclasses', 'machines'],
            needed: FOLLOW,
            why: 'Reads the available classes, and counts the Machines of each class in the pool.',
          },
        ],
      },
      {
        name: 'machinist-ironcore-pools',
        place: { namespace: POOL_LEASE_NAMESPACE },
        grants: [
          {
            group: 'coordination.k8s.io',
            resources: ['leases'],
            needed: ['get', 'create', 'patch'],
            why: SHOWS_LIFE,
          },
        ],
      },
      {
        name: 'machinist-ironcore-pools',
        place: 'leases',
        grants: [{ ...EVENTS, why: 'Shows the leader in kubectl describe.' }, ...leaseGrants(IRONCORE_POOLS_LEASE)],
      },
    ],
  },
  {
    file: 'deploy/rbac/ironcore-machines.yaml',
    comment:
      'Control cluster, in addition to ironcore-pools.yaml: Machines of IronCore, created in the runtimes of the pools that --ironcore-pool serves. See docs/operations/ironcore.md.',
    isFor: ({ leases }) => leases.has(IRONCORE_POOLS_LEASE),
    roles: [
      {
        name: 'machinist-ironcore-machines',
        place: 'cluster',
        grants: [
          {
            group: COMPUTE_GROUP,
            resources: ['machines'],
            needed: ['get', 'patch'],
            why: 'Adds a finalizer and the devices of volumes. Reads a Machine that seems to be gone again before its runtime machine is deleted.',
          },
          { group: COMPUTE_GROUP, resources: ['machines/status'], needed: ['patch'], why: 'Reports their state.' },
          {
            group: STORAGE_GROUP,
            resources: ['volumes'],
            needed: [...FOLLOW, 'patch', 'create', 'delete'],
            why: 'Claimed for Machines. Ephemeral ones are created for Machines and deleted with them.',
          },
          {
            group: NETWORKING_GROUP,
            resources: ['networkinterfaces'],
            needed: [...FOLLOW, 'patch', 'create', 'delete'],
            why: 'Claimed for Machines. Ephemeral ones are created for Machines and deleted with them.',
          },
          {
            group: NETWORKING_GROUP,
            resources: ['networks'],
            needed: FOLLOW,
            why: 'Checks that the network of an interface exists.',
          },
          {
            group: IPAM_GROUP,
            resources: ['prefixes'],
            optional: {
              get: 'network interfaces can use only addresses that are set explicitly',
              'list, watch': 'addresses that are allocated late are seen up to a minute later',
            },
            why: 'Reads and creates addresses for network interfaces that do not set them.',
          },
          {
            resources: ['secrets'],
            needed: ['get'],
            optional: { 'list, watch': 'Secrets that are created late are seen up to a minute later' },
            why: 'Reads the ignition of Machines, and the credentials and encryption keys of their volumes. A pool can run Machines of all namespaces.',
          },
          { ...EVENTS, why: 'Reports what happens to Machines and their pools.' },
        ],
      },
    ],
  },
];
