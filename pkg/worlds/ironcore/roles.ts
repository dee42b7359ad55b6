import { COMPUTE_GROUP, IPAM_GROUP, NETWORKING_GROUP, STORAGE_GROUP } from './api/group.ts';
import { POOL_LEASE_NAMESPACE } from './api/machine-pool.ts';
import { IRONCORE_POOLS_LEASE, IRONCORE_SCHEDULER_LEASE } from './controllers/leases.ts';
import { EVENTS, FOLLOW, grant, leaseGrants, READ, role, type RoleFile } from '../../operator/preflight/roles/role.ts';

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
      role('machinist-ironcore-scheduler', { place: 'cluster' }, [
        grant(COMPUTE_GROUP, ['machines'], {
          needed: [...FOLLOW, 'patch'],
          why: 'Assigns Machines to pools. Pools are not namespaced and are shared by the Machines of all namespaces.',
        }),
        grant(COMPUTE_GROUP, ['machines/status'], {
          needed: ['patch'],
          why: 'Reports why a Machine is not scheduled.',
        }),
        grant(COMPUTE_GROUP, ['machinepools'], { needed: FOLLOW, why: 'Reads the capacity of pools.' }),
        EVENTS,
      ]),
      role('machinist-ironcore-scheduler', { place: 'leases' }, leaseGrants(IRONCORE_SCHEDULER_LEASE)),
    ],
  },
  {
    file: 'deploy/rbac/ironcore-lifecycle.yaml',
    comment:
      'Control cluster, in addition to ironcore-scheduler.yaml: pools and classes of IronCore, for --controllers=*,ironcore. See docs/operations/ironcore.md.',
    namespace: POOL_LEASE_NAMESPACE,
    isFor: ({ controllers }) => controllers.has('ironcore.lifecycle'),
    roles: [
      role('machinist-ironcore-lifecycle', { place: 'cluster' }, [
        grant(COMPUTE_GROUP, ['machines'], {
          optional: { delete: 'taints of MachinePools do not evict Machines' },
          why: 'Evicts Machines because of a taint of their pool.',
        }),
        grant(COMPUTE_GROUP, ['machinepools'], {
          optional: { get: 'taints of MachinePools do not evict Machines' },
          why: 'Checks whether that taint still exists.',
        }),
        grant(COMPUTE_GROUP, ['machinepools/status'], {
          needed: ['patch'],
          why: 'Reports pools that no controller serves.',
        }),
        grant(COMPUTE_GROUP, ['machineclasses'], {
          needed: [...FOLLOW, 'patch'],
          why: 'Adds a finalizer while Machines use the class.',
        }),
      ]),
      role('machinist-ironcore-lifecycle', { place: { namespace: POOL_LEASE_NAMESPACE } }, [
        grant('coordination.k8s.io', ['leases'], { needed: READ, why: SHOWS_LIFE }),
      ]),
    ],
  },
  {
    file: POOLS_FILE,
    comment:
      'Control cluster: pools of IronCore that --ironcore-pool serves. Sufficient for --controllers=ironcore.pools; with other controllers, in addition to the roles of the layout. See docs/operations/ironcore.md.',
    namespace: POOL_LEASE_NAMESPACE,
    isFor: ({ leases }) => leases.has(IRONCORE_POOLS_LEASE),
    roles: [
      role('machinist-ironcore-pools', { place: 'cluster' }, [
        grant(COMPUTE_GROUP, ['machinepools'], {
          needed: [...FOLLOW, 'create'],
          why: 'Created if it does not exist; its labels and taints belong to the administrator.',
        }),
        grant(COMPUTE_GROUP, ['machinepools/status'], {
          needed: ['patch'],
          why: 'Reports the readiness and the capacity of the pool.',
        }),
        grant(COMPUTE_GROUP, ['machineclasses', 'machines'], {
          needed: FOLLOW,
          why: 'Reads the available classes, and counts the Machines of each class in the pool.',
        }),
      ]),
      role('machinist-ironcore-pools', { place: { namespace: POOL_LEASE_NAMESPACE } }, [
        grant('coordination.k8s.io', ['leases'], { needed: ['get', 'create', 'patch'], why: SHOWS_LIFE }),
      ]),
      role('machinist-ironcore-pools', { place: 'leases' }, [
        { ...EVENTS, why: 'Shows the leader in kubectl describe.' },
        ...leaseGrants(IRONCORE_POOLS_LEASE),
      ]),
    ],
  },
  {
    file: 'deploy/rbac/ironcore-machines.yaml',
    comment:
      'Control cluster, in addition to ironcore-pools.yaml: Machines of IronCore, created in the runtimes of the pools that --ironcore-pool serves. See docs/operations/ironcore.md.',
    isFor: ({ leases }) => leases.has(IRONCORE_POOLS_LEASE),
    roles: [
      role('machinist-ironcore-machines', { place: 'cluster' }, [
        grant(COMPUTE_GROUP, ['machines'], {
          needed: ['get', 'patch'],
          why: 'Adds a finalizer and the devices of volumes. Reads a Machine that seems to be gone again before its runtime machine is deleted.',
        }),
        grant(COMPUTE_GROUP, ['machines/status'], { needed: ['patch'], why: 'Reports their state.' }),
        grant(STORAGE_GROUP, ['volumes'], {
          needed: [...FOLLOW, 'patch', 'create', 'delete'],
          why: 'Claimed for Machines. Ephemeral ones are created for Machines and deleted with them.',
        }),
        grant(NETWORKING_GROUP, ['networkinterfaces'], {
          needed: [...FOLLOW, 'patch', 'create', 'delete'],
          why: 'Claimed for Machines. Ephemeral ones are created for Machines and deleted with them.',
        }),
        grant(NETWORKING_GROUP, ['networks'], {
          needed: FOLLOW,
          why: 'Checks that the network of an interface exists.',
        }),
        grant(IPAM_GROUP, ['prefixes'], {
          optional: {
            get: 'network interfaces can use only addresses that are set explicitly',
            'list, watch': 'addresses that are allocated late are seen up to a minute later',
          },
          why: 'Reads and creates addresses for network interfaces that do not set them.',
        }),
        grant('', ['secrets'], {
          needed: ['get'],
          optional: { 'list, watch': 'Secrets that are created late are seen up to a minute later' },
          why: 'Reads the ignition of Machines, and the credentials and encryption keys of their volumes. A pool can run Machines of all namespaces.',
        }),
        { ...EVENTS, why: 'Reports what happens to Machines and their pools.' },
      ]),
    ],
  },
];
