import { GROUP } from '../../../apis/machine/v1alpha1/group.ts';
import { MACHINE_LEASE, MANAGER_LEASE, servesOwnKinds } from '../../../kube/leader/names.ts';
import type { Workload } from '../workload.ts';
import { EVENTS, grant, type Grant, leaseGrants, READ, role, type RoleFile, usedBy } from './role.ts';

/** What does not work without the RoleBindings in the namespace of the Machines. */
export const LOST_WITHOUT_BINDINGS =
  'a namespace with Machines is not removed after its deletion, because the finalizer of its RoleBinding remains';

/** The shipped file that grants what is needed in a namespace of Machines that holds no Leases, and in the one that holds these. */
export const MACHINES_ROLES = 'deploy/rbac/machines.yaml';

/** The shipped file that grants what a process with cells needs in the control cluster. */
const CELLS_ROLES = 'deploy/rbac/cells.yaml';

/** The same where the namespaces of the cells are named: what is not in them, and what is in each of them. */
const NAMED_CELLS_ROLES = 'deploy/rbac/named-cells.yaml';
export const CELL_ROLES = 'deploy/rbac/cell.yaml';

/** The shipped RoleBinding that lets the manager work in the namespace of the Machines. */
export const MACHINES_ROLE_BINDING = 'machinist-machines';

/** The shipped RoleBindings of the namespace of the Machines, in a namespace without Leases: of the manager, and of its driver for Cluster API. */
const MACHINES_BINDINGS = [
  MACHINES_ROLE_BINDING,
  'machinist-cluster-api-machines',
  'machinist-cluster-api-providers',
] as const;

const OWN_STATUS = 'Each controller writes only the status of its own kind.';

/** Of the owner controllers, in the control cluster. */
const MANAGER: readonly Grant[] = usedBy(
  ({ leases }) => leases.has(MANAGER_LEASE),
  [
    grant(GROUP, ['machinedeployments'], {
      needed: [...READ, 'patch'],
      why: 'Created and deleted by users. The controller writes finalizers, revisions and annotations.',
    }),
    grant(GROUP, ['machinesets', 'machines'], {
      needed: [...READ, 'create', 'patch', 'delete'],
      why: 'Creates, updates and deletes them for MachineDeployments and MachineSets.',
    }),
    grant(GROUP, ['machinedeployments/status', 'machinesets/status'], { needed: ['patch'], why: OWN_STATUS }),
  ],
);

/** What the owner controllers need besides for autoscalers, in the control cluster. */
const AUTOSCALED: readonly Grant[] = usedBy(
  ({ leases, isAutoscaled }) => isAutoscaled && leases.has(MANAGER_LEASE),
  [
    grant(GROUP, ['machineclasses'], {
      optional: { 'get, list, watch, patch': 'autoscalers do not know the shape of new Nodes' },
      why: 'With --autoscaler-grpc-address: reads the shape of new Nodes, and stores the observed capacity of Nodes in an annotation.',
    }),
    grant('coordination.k8s.io', ['leases'], {
      name: MACHINE_LEASE,
      optional: { get: 'autoscalers are refused, because it is unknown whether the machine controllers are running' },
      why: 'Checks for autoscalers whether the machine controllers are running.',
      isUsed: ({ isElected }) => isElected,
    }),
  ],
);

/** Of the machine controllers, in the control cluster. */
const MACHINE: readonly Grant[] = usedBy(
  ({ leases }) => leases.has(MACHINE_LEASE),
  [
    grant(GROUP, ['machines'], {
      needed: [...READ, 'patch'],
      optional: { delete: 'the Machine of a deleted Node is not deleted' },
      why: 'Writes finalizer, provider ID and labels. Deletes a Machine when its Node was deleted.',
    }),
    grant(GROUP, ['machines/status'], { needed: ['patch'], why: OWN_STATUS }),
    grant(GROUP, ['machinesets', 'machinedeployments'], {
      optional: { 'get, list, watch': 'machines are replaced one at a time' },
      why: 'Reads the annotation max-replacements, which limits how many machines of a MachineDeployment are replaced at once.',
    }),
    grant(GROUP, ['machineclasses'], {
      needed: READ,
      optional: { patch: 'a class can be deleted while Machines use it' },
      why: 'Reads classes; patches the finalizer, and a record of Machines that were deleted by force.',
    }),
    grant(GROUP, ['nodelabelpolicies'], {
      optional: { 'list, watch': 'node templates may set any label' },
      why: 'Reads which labels node templates may set.',
    }),
    grant('', ['secrets'], {
      needed: READ,
      optional: { patch: 'a Secret can be deleted while a class uses it' },
      why: 'Listed and watched without data; read when a MachineClass refers to them; patched to add the finalizer.',
    }),
  ],
);

/** The namespace of the Machines can be deleted while we work; what lets us do so is kept until nothing is left. */
const BINDINGS: readonly Grant[] = usedBy(
  ({ leases }) => leases.has(MACHINE_LEASE),
  [
    grant('rbac.authorization.k8s.io', ['rolebindings'], {
      optional: { 'list, watch': LOST_WITHOUT_BINDINGS },
      why: 'Keeps the RoleBinding of a namespace that is being deleted until its last Machine is gone.',
    }),
    ...MACHINES_BINDINGS.map((name) =>
      grant('rbac.authorization.k8s.io', ['rolebindings'], {
        name,
        optional: { patch: LOST_WITHOUT_BINDINGS },
        why: 'Removes its finalizer.',
      }),
    ),
  ],
);

/** The namespaces that are managed, and their shards. */
const CELLS: readonly Grant[] = [
  grant('', ['namespaces'], {
    needed: READ,
    why: 'Finds the namespaces that the label selector of --cells selects, with their settings; looks again before a target cluster changes hands.',
  }),
];

/** The namespace of a cell that is named. */
const CELL: readonly Grant[] = [
  grant('', ['namespaces'], {
    needed: ['get'],
    why: 'Reads the Namespace itself, with its settings, and no other one.',
  }),
];

/** A namespace may have a manager of its own, whose Leases are in it. */
const otherManagers = (lost: string, why: string): readonly Grant[] =>
  [MANAGER_LEASE, MACHINE_LEASE].map((name) =>
    grant('coordination.k8s.io', ['leases'], {
      name,
      optional: { get: lost },
      why,
      isUsed: ({ leases }) => leases.has(name),
    }),
  );

/** One that becomes a cell may have it still. */
const OTHER_MANAGERS = otherManagers(
  'a cell in whose namespace another manager is running is managed by both',
  'Looks whether a manager of its own is still running in the namespace of a cell.',
);

/** That of the Machines, where the Leases of this process are in another one. */
const MANAGERS_BESIDE = otherManagers(
  'Machines in whose namespace another manager is running are managed by both',
  'Looks whether another manager is running in the namespace of the Machines.',
);

/** Replicas share the shards; a new one appears under a name of its own, which RBAC cannot know. */
const CELL_LEASES: readonly Grant[] = usedBy(
  ({ isElected }) => isElected,
  [
    grant('coordination.k8s.io', ['leases'], {
      needed: [...READ, 'create', 'update'],
      optional: { delete: 'Leases of replicas that are gone are not deleted' },
      why: 'Leader election of each shard; shows that the replica is alive, and finds the other replicas.',
    }),
  ],
);

const LEASE_EVENTS: Grant = {
  ...EVENTS,
  why: 'Events of the Leases: changes of the leader.',
  isUsed: ({ isElected }) => isElected,
};
const BOTH_LEASES = [...leaseGrants(MANAGER_LEASE), ...leaseGrants(MACHINE_LEASE)];

/** The shipped files for a process that serves our own kinds. */
export function machinistRoles({
  leases,
  namespace,
  leaseNamespace,
  hasCells,
  ofNamedCells,
}: Pick<Workload, 'leases' | 'namespace' | 'leaseNamespace' | 'hasCells' | 'ofNamedCells'>): {
  readonly control: string;
  readonly target: string;
} {
  const ofCells =
    ofNamedCells === undefined
      ? hasCells
        ? CELLS_ROLES
        : undefined
      : ofNamedCells === 'cell'
        ? CELL_ROLES
        : NAMED_CELLS_ROLES;
  const isMachine = leases.has(MACHINE_LEASE);
  const owners = leases.has(MANAGER_LEASE) ? 'control-manager' : 'control-machine-controller';
  const inOne = isMachine && leases.has(MANAGER_LEASE) ? 'control' : owners;
  return {
    control: ofCells ?? (namespace === leaseNamespace ? `deploy/rbac/${inOne}.yaml` : MACHINES_ROLES),
    target: isMachine ? 'deploy/rbac/target.yaml' : 'deploy/rbac/target-manager.yaml',
  };
}

function isControl(name: string): (workload: Workload) => boolean {
  return (workload) =>
    servesOwnKinds(workload.leases) && machinistRoles(workload).control === `deploy/rbac/${name}.yaml`;
}

function isTarget(name: string): (workload: Workload) => boolean {
  return (workload) =>
    workload.hasTarget &&
    servesOwnKinds(workload.leases) &&
    machinistRoles(workload).target === `deploy/rbac/${name}.yaml`;
}

/** What our own kinds, and the Nodes that they become, need. */
export const MACHINIST_ROLES: readonly RoleFile[] = [
  {
    file: 'deploy/rbac/control.yaml',
    comment: 'Control cluster, all controllers in one process: all objects of one namespace.',
    isFor: isControl('control'),
    roles: [
      role('machinist-control', { place: 'machines' }, [...MACHINE, ...MANAGER, EVENTS, ...BOTH_LEASES, ...AUTOSCALED]),
    ],
  },
  {
    file: 'deploy/rbac/control-manager.yaml',
    comment: 'Control cluster, owner controllers (MachineDeployments and MachineSets).',
    isFor: isControl('control-manager'),
    roles: [
      role('machinist-manager-control', { place: 'machines' }, [
        ...MANAGER,
        EVENTS,
        ...leaseGrants(MANAGER_LEASE),
        ...AUTOSCALED,
      ]),
    ],
  },
  {
    file: 'deploy/rbac/control-machine-controller.yaml',
    comment: 'Control cluster, machine controllers (Machines, MachineClasses, Secrets).',
    isFor: isControl('control-machine-controller'),
    roles: [
      role('machinist-machine-controller-control', { place: 'machines' }, [
        ...MACHINE,
        EVENTS,
        ...leaseGrants(MACHINE_LEASE),
      ]),
    ],
  },
  {
    file: MACHINES_ROLES,
    comment:
      'Control cluster, all controllers in one process that runs in another namespace than the Machines. The RoleBinding for the namespace of the Machines is in deploy/machines-namespace.yaml.',
    isFor: isControl('machines'),
    roles: [
      role('machinist-machines', { place: 'machines', isBoundElsewhere: true }, [
        ...MACHINE,
        ...MANAGER,
        EVENTS,
        ...BINDINGS,
        ...MANAGERS_BESIDE,
        ...AUTOSCALED.filter(({ group }) => group === GROUP),
      ]),
      role(
        'machinist-leases',
        {
          place: 'leases',
          comment:
            'In the namespace of the process, not of the Machines: a Lease cannot be renewed in a namespace that is being deleted.',
        },
        [...BOTH_LEASES, ...AUTOSCALED.filter(({ group }) => group !== GROUP), LEASE_EVENTS],
      ),
    ],
  },
  {
    file: CELLS_ROLES,
    comment:
      'Control cluster, one process for many namespaces (--cells). Each target cluster needs deploy/rbac/target.yaml.',
    isFor: isControl('cells'),
    roles: [
      role('machinist-cells', { place: 'cluster' }, [...CELLS, ...OTHER_MANAGERS, ...MACHINE, ...MANAGER, EVENTS]),
      role('machinist-cells-leases', { place: 'leases', comment: 'In the namespace of the process.' }, CELL_LEASES),
    ],
  },
  {
    file: NAMED_CELLS_ROLES,
    comment:
      'Control cluster, one process for namespaces that are named (--cell-namespaces); each of them needs deploy/rbac/cell.yaml.',
    isFor: isControl('named-cells'),
    roles: [
      role('machinist-cells-leases', { place: 'leases', comment: 'In the namespace of the process.' }, [
        ...CELL_LEASES,
        LEASE_EVENTS,
      ]),
    ],
  },
  {
    file: CELL_ROLES,
    comment:
      'Control cluster, each namespace that --cell-namespaces names. The RoleBinding, which grants it there alone, is in deploy/cell-namespace.yaml.',
    isFor: isControl('cell'),
    roles: [
      role('machinist-cell', { place: 'machines', isBoundElsewhere: true }, [
        ...CELL,
        ...OTHER_MANAGERS,
        ...MACHINE,
        ...MANAGER,
        EVENTS,
        ...BINDINGS,
      ]),
    ],
  },
  {
    file: 'deploy/rbac/cells-target.yaml',
    comment: 'Each target cluster of a process for many namespaces (--cells), besides deploy/rbac/target.yaml.',
    isFor: ({ hasCells, hasTarget }) => hasCells && hasTarget,
    roles: [
      role('machinist-cells-target', { cluster: 'target', place: 'cluster' }, [
        grant('', ['namespaces'], {
          name: 'kube-system',
          needed: ['get'],
          why: 'Its UID identifies the cluster, which belongs to one namespace only.',
        }),
      ]),
    ],
  },
  {
    file: 'deploy/rbac/control-identity.yaml',
    comment: 'Control cluster, all layouts with drivers.',
    isFor: ({ leases, callsDrivers }) => callsDrivers && leases.has(MACHINE_LEASE),
    roles: [
      role('machinist-control-identity', { place: 'cluster' }, [
        grant('', ['namespaces'], {
          name: 'kube-system',
          needed: ['get'],
          why: "Its UID identifies the cluster. VMs are tagged with it, so that two clusters in one provider account do not see each other's VMs.",
        }),
      ]),
    ],
  },
  {
    file: 'deploy/rbac/target-manager.yaml',
    comment: 'Target cluster, owner controllers.',
    isFor: isTarget('target-manager'),
    roles: [
      role('machinist-manager-target', { cluster: 'target', place: 'cluster' }, [
        grant('', ['nodes'], {
          needed: READ,
          optional: { patch: 'labels, annotations and taints of templates are not copied to Nodes' },
          why: 'Writes labels, annotations, taints and the cordon of Nodes during a rollout.',
        }),
      ]),
    ],
  },
  {
    file: 'deploy/rbac/target.yaml',
    comment: 'Target cluster, all controllers in one process, or the machine controllers.',
    isFor: isTarget('target'),
    roles: [
      role('machinist-target', { cluster: 'target', place: 'cluster' }, [
        grant('', ['nodes'], {
          needed: READ,
          optional: {
            patch: 'Nodes cannot be cordoned, labelled or tainted, so they are not drained',
            delete: 'Nodes of deleted Machines are not deleted',
          },
          why: 'Watches the health of Nodes; writes labels, annotations, taints, the cordon and the finalizer; deletes Nodes with their Machine.',
        }),
        grant('', ['nodes/status'], {
          optional: { patch: 'Nodes do not show the conditions of their Machine' },
          why: 'Writes conditions (Terminating, InPlaceUpdate, Preserved, Maintenance) and virtual capacity.',
        }),
        grant('', ['pods'], {
          optional: { 'get, list, watch, delete': 'Nodes cannot be drained' },
          why: 'Reads the pods of a Node that is being drained; deletes them after the last eviction attempt and in a forced drain.',
        }),
        grant('', ['pods/eviction'], { optional: { create: 'Nodes cannot be drained' }, why: 'Drains.' }),
        grant('policy', ['poddisruptionbudgets'], {
          optional: { list: 'the budget that blocks a drain is not reported' },
          why: 'Reports the budget that blocks a drain.',
        }),
        grant('', ['persistentvolumeclaims', 'persistentvolumes'], {
          optional: { get: 'pods with volumes cannot be drained' },
          why: 'Reads which volumes move with a pod.',
        }),
        grant('storage.k8s.io', ['volumeattachments'], {
          needed: READ,
          optional: { delete: 'volumes stay attached after a forced drain' },
          why: 'Watched while volumes are detached; deleted after a forced drain, unless another controller detaches them.',
        }),
      ]),
      role('machinist-target-tokens', { cluster: 'target', place: { namespace: 'kube-system' } }, [
        grant('', ['secrets'], {
          optional: {
            'get, create, patch, delete': 'machines whose user data requires a bootstrap token are not created',
          },
          why: 'Bootstrap tokens, one for each machine, deleted after the machine has joined.',
        }),
      ]),
    ],
  },
];
