import { GROUP } from '../apis/machine/v1alpha1/group.ts';
import { BOOTSTRAP_GROUP, CLUSTER_API_GROUP, INFRASTRUCTURE_GROUP } from '../apis/cluster-api/keys.ts';
import { COMPUTE_GROUP, IPAM_GROUP, NETWORKING_GROUP, STORAGE_GROUP } from '../apis/ironcore/group.ts';
import { POOL_LEASE_NAMESPACE } from '../apis/ironcore/machine-pool.ts';
import { CLUSTER_GROUP } from '../apis/mirantis/machine.ts';
import { KAAS_GROUP } from '../apis/mirantis/pool.ts';
import type { AccessAttributes } from '../kube/access-rules.ts';
import {
  IRONCORE_POOLS_LEASE,
  IRONCORE_SCHEDULER_LEASE,
  MACHINE_LEASE,
  MANAGER_LEASE,
  servesOwnKinds,
} from '../leader/names.ts';

/** Which of the two clusters of a process; both may be one. */
export type ClusterRole = 'control' | 'target';

/** What a process may have to be allowed. */
export interface Permission {
  readonly cluster: ClusterRole;
  readonly attributes: AccessAttributes;
  /** The shipped file that grants it. */
  readonly file: string;
  /** What does not work without it; undefined: nothing does. */
  readonly lost: string | undefined;
}

/** What is run, as far as permissions go. */
export interface Workload {
  /** Those under which its controllers work. */
  readonly leases: ReadonlySet<string>;
  /** Whether the Leases are fought for. */
  readonly isElected: boolean;
  readonly hasTarget: boolean;
  readonly callsDrivers: boolean;
  readonly isAutoscaled: boolean;
  /** Whether Machines of Mirantis Container Cloud are served. */
  readonly isMirantis: boolean;
  /** Whether Machines of Cluster API are looked after. */
  readonly isClusterAPI: boolean;
  /** Whether pools and classes of IronCore are looked after. */
  readonly isIronCoreLifecycle: boolean;
  /** Of the Machines. */
  readonly namespace: string;
}

interface Rule {
  readonly cluster: ClusterRole;
  readonly group: string;
  /** A subresource follows a slash. */
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly namespace?: string | undefined;
  readonly name?: string;
  readonly file: string;
  readonly lost?: string;
}

/** The shipped file that grants what the front end for Mirantis Container Cloud needs beside the others. */
export const MIRANTIS_ROLES = 'deploy/rbac/mirantis.yaml';

/** The shipped file that grants what the controller for Cluster API needs beside the others. */
export const CLUSTER_API_ROLES = 'deploy/rbac/cluster-api.yaml';

/** The shipped file that grants all that the scheduler for IronCore's Machines needs. */
const IRONCORE_SCHEDULER_ROLES = 'deploy/rbac/ironcore-scheduler.yaml';

/** The shipped file that grants all that serving its pools needs. */
const IRONCORE_POOLS_ROLES = 'deploy/rbac/ironcore-pools.yaml';

/** The shipped file that grants what making Machines in them real needs beside that. */
const IRONCORE_MACHINES_ROLES = 'deploy/rbac/ironcore-machines.yaml';

/** The shipped file that grants what looking after its pools and classes needs beside that. */
const IRONCORE_LIFECYCLE_ROLES = 'deploy/rbac/ironcore-lifecycle.yaml';

/** What does not work without the kinds that the front end can do without. */
export const LOST_WITHOUT_CLUSTERS = 'maintenance waits for no Cluster, and Clusters limit no labels';
/** The same of MachinePools. */
export const LOST_WITHOUT_POOLS = 'no MachinePool is served';

const READ = ['get', 'list', 'watch'];
/** What Machines of IronCore use is claimed, and some of it is made for them. */
const USE = ['list', 'watch', 'patch', 'create', 'delete'];

/** The shipped files that grant what the controllers of these Leases need, by cluster. */
export function roleFiles(leases: ReadonlySet<string>): Readonly<Record<ClusterRole, string>> {
  const machines = leases.has(MACHINE_LEASE);
  if (!servesOwnKinds(leases)) {
    const file = leases.has(IRONCORE_SCHEDULER_LEASE) ? IRONCORE_SCHEDULER_ROLES : IRONCORE_POOLS_ROLES;
    return { control: file, target: file };
  }
  const owners = leases.has(MANAGER_LEASE) ? 'control-manager' : 'control-machine-controller';
  const control = machines && leases.has(MANAGER_LEASE) ? 'control' : owners;
  const target = machines ? 'target' : 'target-manager';
  return { control: `deploy/rbac/${control}.yaml`, target: `deploy/rbac/${target}.yaml` };
}

/**
 * What a process is to be allowed: what the shipped files grant for its layout. What it cannot do anything without keeps it from
 * leading; the rest is told, as roles that others wrote may lack it.
 */
export function permissionsOf(workload: Workload): readonly Permission[] {
  const { leases, hasTarget } = workload;
  const { control, target } = roleFiles(leases);
  const rules = [
    ...(leases.has(MANAGER_LEASE) ? managerRules(control, workload) : []),
    ...(leases.has(MACHINE_LEASE) ? machineRules(control, workload) : []),
    ...(workload.isMirantis ? mirantisRules(workload) : []),
    ...(workload.isClusterAPI ? clusterAPIRules(workload) : []),
    ...(leases.has(IRONCORE_SCHEDULER_LEASE) ? schedulerRules() : []),
    ...(workload.isIronCoreLifecycle ? lifecycleRules() : []),
    ...(leases.has(IRONCORE_POOLS_LEASE) ? [...poolRules(workload), ...ironCoreMachineRules()] : []),
    ...commonRules(control, workload),
    ...(hasTarget ? targetRules(target, leases) : []),
  ];
  return withoutTwins(rules.flatMap(expand));
}

function managerRules(file: string, { namespace, isAutoscaled, isElected }: Workload): readonly Rule[] {
  const ours = { cluster: 'control', group: GROUP, namespace, file } as const;
  const lifeOfMachineControllers: Rule = {
    ...ours,
    group: 'coordination.k8s.io',
    resources: ['leases'],
    verbs: ['get'],
    name: MACHINE_LEASE,
    lost: 'autoscalers are refused, because nobody knows whether machine controllers work',
  };
  return [
    { ...ours, resources: ['machinedeployments'], verbs: [...READ, 'patch'] },
    { ...ours, resources: ['machinesets', 'machines'], verbs: [...READ, 'create', 'patch', 'delete'] },
    {
      ...ours,
      resources: ['machinedeployments/status', 'machinesets/status'],
      verbs: ['patch'],
    },
    ...(isAutoscaled
      ? [
          {
            ...ours,
            resources: ['machineclasses'],
            verbs: [...READ, 'patch'],
            lost: 'autoscalers are not told what new Nodes would look like',
          },
          ...(isElected ? [lifeOfMachineControllers] : []),
        ]
      : []),
  ];
}

function mirantisRules({ namespace }: Workload): readonly Rule[] {
  const ours = { cluster: 'control', group: GROUP, namespace, file: MIRANTIS_ROLES } as const;
  const clusters = { ...ours, lost: LOST_WITHOUT_CLUSTERS };
  const pools = { ...ours, lost: LOST_WITHOUT_POOLS };
  return [
    { ...ours, group: CLUSTER_GROUP, resources: ['machines'], verbs: ['list', 'watch', 'patch', 'delete'] },
    { ...pools, group: CLUSTER_GROUP, resources: ['machines'], verbs: ['create'] },
    { ...ours, group: CLUSTER_GROUP, resources: ['machines/status'], verbs: ['patch'] },
    { ...clusters, group: CLUSTER_GROUP, resources: ['clusters'], verbs: ['list', 'watch'] },
    { ...clusters, group: CLUSTER_GROUP, resources: ['clusters/status'], verbs: ['patch'] },
    { ...clusters, resources: ['nodelabelpolicies'], verbs: ['list', 'watch', 'create', 'patch', 'delete'] },
    { ...pools, group: KAAS_GROUP, resources: ['machinepools'], verbs: ['list', 'watch', 'patch'] },
    { ...pools, group: KAAS_GROUP, resources: ['machinepools/status'], verbs: ['patch'] },
    { ...pools, resources: ['machinedeployments'], verbs: ['create', 'delete'] },
    { ...ours, resources: ['machineclasses'], verbs: ['list', 'watch', 'create', 'delete'] },
    { ...ours, group: '', resources: ['configmaps', 'secrets'], verbs: ['get'] },
    {
      ...ours,
      group: '',
      resources: ['configmaps', 'secrets'],
      verbs: ['list', 'watch'],
      lost: 'settings of Clusters that change are seen late',
    },
  ];
}

function clusterAPIRules({ namespace, hasTarget }: Workload): readonly Rule[] {
  const ours = { cluster: 'control', group: CLUSTER_API_GROUP, namespace, file: CLUSTER_API_ROLES } as const;
  return [
    { ...ours, resources: ['machines'], verbs: ['list', 'watch', 'patch', 'delete'] },
    { ...ours, resources: ['clusters'], verbs: ['list', 'watch', 'patch'] },
    { ...ours, resources: ['machines/status', 'clusters/status'], verbs: ['patch'] },
    {
      ...ours,
      resources: ['machinesets', 'machinedeployments'],
      verbs: ['list', 'watch'],
      lost: 'Nodes of older revisions get no taint',
    },
    {
      ...ours,
      resources: ['machinedrainrules'],
      verbs: ['list', 'watch'],
      lost: 'nothing is drained where rules for drains are defined',
    },
    ...[INFRASTRUCTURE_GROUP, BOOTSTRAP_GROUP].map((group): Rule => ({
      ...ours,
      group,
      resources: ['*'],
      verbs: ['get', 'list', 'watch', 'patch', 'delete'],
      lost: `Machines whose objects are of ${group} do not go on`,
    })),
    ...(hasTarget
      ? [
          {
            cluster: 'target',
            group: '',
            resources: ['namespaces'],
            verbs: ['list'],
            file: CLUSTER_API_ROLES,
            lost: 'nothing is drained where rules for drains ask for labels of namespaces',
          } as const,
        ]
      : []),
    {
      cluster: 'control',
      group: 'apiextensions.k8s.io',
      resources: ['customresourcedefinitions'],
      verbs: ['list', 'watch'],
      file: CLUSTER_API_ROLES,
    },
  ];
}

function schedulerRules(): readonly Rule[] {
  const theirs = { cluster: 'control', group: COMPUTE_GROUP, file: IRONCORE_SCHEDULER_ROLES } as const;
  return [
    { ...theirs, resources: ['machines'], verbs: ['list', 'watch', 'patch'] },
    { ...theirs, resources: ['machines/status'], verbs: ['patch'] },
    { ...theirs, resources: ['machinepools'], verbs: ['list', 'watch'] },
    { ...theirs, group: '', resources: ['events'], verbs: ['create', 'patch'], lost: 'Events are not written' },
  ];
}

function lifecycleRules(): readonly Rule[] {
  const theirs = { cluster: 'control', group: COMPUTE_GROUP, file: IRONCORE_LIFECYCLE_ROLES } as const;
  return [
    { ...theirs, resources: ['machines'], verbs: ['delete'], lost: 'taints of MachinePools drive out no Machine' },
    { ...theirs, resources: ['machinepools'], verbs: ['get'], lost: 'taints of MachinePools drive out no Machine' },
    { ...theirs, resources: ['machinepools/status'], verbs: ['patch'] },
    { ...theirs, resources: ['machineclasses'], verbs: ['list', 'watch', 'patch'] },
    {
      ...theirs,
      group: 'coordination.k8s.io',
      namespace: POOL_LEASE_NAMESPACE,
      resources: ['leases'],
      verbs: READ,
    },
  ];
}

function poolRules({ namespace }: Workload): readonly Rule[] {
  const theirs = { cluster: 'control', group: COMPUTE_GROUP, file: IRONCORE_POOLS_ROLES } as const;
  return [
    { ...theirs, resources: ['machinepools'], verbs: ['list', 'watch', 'create'] },
    { ...theirs, resources: ['machinepools/status'], verbs: ['patch'] },
    { ...theirs, resources: ['machineclasses', 'machines'], verbs: ['list', 'watch'] },
    {
      ...theirs,
      group: 'coordination.k8s.io',
      namespace: POOL_LEASE_NAMESPACE,
      resources: ['leases'],
      verbs: ['get', 'create', 'patch'],
    },
    {
      ...theirs,
      group: '',
      namespace,
      resources: ['events'],
      verbs: ['create', 'patch'],
      lost: 'Events are not written',
    },
  ];
}

function ironCoreMachineRules(): readonly Rule[] {
  const theirs = { cluster: 'control', group: COMPUTE_GROUP, file: IRONCORE_MACHINES_ROLES } as const;
  const noPrefixes = 'NetworkInterfaces have only addresses that are given';
  return [
    { ...theirs, resources: ['machines'], verbs: ['get', 'patch'] },
    { ...theirs, resources: ['machines/status'], verbs: ['patch'] },
    { ...theirs, group: STORAGE_GROUP, resources: ['volumes'], verbs: USE },
    { ...theirs, group: NETWORKING_GROUP, resources: ['networkinterfaces'], verbs: USE },
    { ...theirs, group: NETWORKING_GROUP, resources: ['networks'], verbs: ['list', 'watch'] },
    { ...theirs, group: IPAM_GROUP, resources: ['prefixes'], verbs: ['get'], lost: noPrefixes },
    { ...theirs, group: '', resources: ['secrets'], verbs: ['get'] },
    { ...theirs, group: '', resources: ['events'], verbs: ['create', 'patch'], lost: 'Events are not written' },
  ];
}

function machineRules(file: string, { namespace, callsDrivers }: Workload): readonly Rule[] {
  const ours = { cluster: 'control', group: GROUP, namespace, file } as const;
  return [
    { ...ours, resources: ['machines'], verbs: [...READ, 'patch'] },
    { ...ours, resources: ['machines'], verbs: ['delete'], lost: 'the Machine of a deleted Node stays' },
    { ...ours, resources: ['machines/status'], verbs: ['patch'] },
    {
      ...ours,
      resources: ['machinesets', 'machinedeployments'],
      verbs: READ,
      lost: 'machines are replaced one at a time',
    },
    { ...ours, resources: ['machineclasses'], verbs: READ },
    {
      ...ours,
      resources: ['nodelabelpolicies'],
      verbs: ['list', 'watch'],
      lost: 'node templates may ask for any label',
    },
    { ...ours, resources: ['machineclasses'], verbs: ['patch'], lost: 'a class can be deleted while Machines use it' },
    { ...ours, group: '', resources: ['secrets'], verbs: READ },
    {
      ...ours,
      group: '',
      resources: ['secrets'],
      verbs: ['patch'],
      lost: 'a Secret can be deleted while a class uses it',
    },
    ...(callsDrivers
      ? [
          {
            cluster: 'control',
            group: '',
            resources: ['namespaces'],
            verbs: ['get'],
            name: 'kube-system',
            file: 'deploy/rbac/control-identity.yaml',
          } as const,
        ]
      : []),
  ];
}

/** The shipped files that grant what the election for a Lease needs; others have that of the layout. */
const LEASE_ROLES: ReadonlyMap<string, string> = new Map([
  [IRONCORE_SCHEDULER_LEASE, IRONCORE_SCHEDULER_ROLES],
  [IRONCORE_POOLS_LEASE, IRONCORE_POOLS_ROLES],
]);

function commonRules(file: string, { leases, isElected, namespace }: Workload): readonly Rule[] {
  const own = { cluster: 'control', namespace, file } as const;
  const events = {
    ...own,
    group: '',
    resources: ['events'],
    verbs: ['create', 'patch'],
    lost: 'Events are not written',
  };
  const fileOf = (name: string): string => LEASE_ROLES.get(name) ?? file;
  return [
    ...(servesOwnKinds(leases) ? [events] : []),
    ...(isElected ? [...leases].flatMap((name) => leaseRules(name, { ...own, file: fileOf(name) })) : []),
  ];
}

function leaseRules(name: string, own: Pick<Rule, 'cluster' | 'namespace' | 'file'>): readonly Rule[] {
  const lease = { ...own, group: 'coordination.k8s.io', resources: ['leases'] };
  return [
    { ...lease, verbs: ['create'] },
    { ...lease, name, verbs: ['get', 'update'] },
    { ...lease, name, verbs: ['watch'], lost: 'a Lease that was given up is taken seconds later' },
  ];
}

function targetRules(file: string, leases: ReadonlySet<string>): readonly Rule[] {
  const core = { cluster: 'target', group: '', file } as const;
  const nodes = { ...core, resources: ['nodes'] };
  if (!leases.has(MACHINE_LEASE)) {
    return [
      { ...nodes, verbs: READ },
      { ...nodes, verbs: ['patch'], lost: 'labels, annotations and taints of templates do not reach Nodes' },
    ];
  }
  const volumes = { ...core, group: 'storage.k8s.io', resources: ['volumeattachments'] };
  return [
    { ...nodes, verbs: READ },
    { ...nodes, verbs: ['patch'], lost: 'Nodes cannot be cordoned, labelled or tainted, so that nothing is drained' },
    { ...nodes, verbs: ['delete'], lost: 'Nodes of deleted Machines stay' },
    { ...core, resources: ['nodes/status'], verbs: ['patch'], lost: 'Nodes do not show conditions of ours' },
    { ...core, resources: ['pods'], verbs: [...READ, 'delete'], lost: 'Nodes cannot be drained' },
    { ...core, resources: ['pods/eviction'], verbs: ['create'], lost: 'Nodes cannot be drained' },
    {
      ...core,
      group: 'policy',
      resources: ['poddisruptionbudgets'],
      verbs: ['list'],
      lost: 'it is not told which budget blocks a drain',
    },
    {
      ...core,
      resources: ['persistentvolumeclaims', 'persistentvolumes'],
      verbs: ['get'],
      lost: 'pods with volumes cannot be drained',
    },
    { ...volumes, verbs: READ },
    { ...volumes, verbs: ['delete'], lost: 'volumes stay attached after a forced drain' },
    {
      ...core,
      namespace: 'kube-system',
      resources: ['secrets'],
      verbs: ['get', 'create', 'patch', 'delete'],
      lost: 'machines whose user data asks for a bootstrap token are not created',
    },
  ];
}

function expand({ cluster, group, namespace, name, resources, verbs, file, lost }: Rule): readonly Permission[] {
  return resources.flatMap((path) => {
    const [resource = '', subresource] = path.split('/');
    return verbs.map((verb) => ({
      cluster,
      attributes: { verb, group, resource, subresource, namespace, name },
      file,
      lost,
    }));
  });
}

/** Each once; of two, the one that nothing works without. */
function withoutTwins(permissions: readonly Permission[]): readonly Permission[] {
  const byWhat = new Map<string, Permission>();
  for (const permission of permissions) {
    const what = JSON.stringify([permission.cluster, permission.attributes]);
    const other = byWhat.get(what);
    if (other?.lost !== undefined || other === undefined) byWhat.set(what, permission);
  }
  return [...byWhat.values()];
}

/** Resources that one line of the log names. */
const MOST_NAMED = 6;

/** What is missing of one shipped file. */
export interface MissingGrants {
  readonly cluster: ClusterRole;
  readonly file: string;
  /** `create, patch machines.machine.sapcloud.io in namespace x`, one for each resource. */
  readonly what: readonly string[];
  /** What does not work without it; empty: nothing does. */
  readonly lost: readonly string[];
}

/** What to apply, and what for, by cluster and file. */
export function missingByFile(missing: readonly Permission[]): readonly MissingGrants[] {
  const byFile = Map.groupBy(missing, ({ cluster, file }) => `${cluster} ${file}`);
  return [...byFile.values()].flatMap((ofFile) => {
    const [first] = ofFile;
    if (first === undefined) return [];
    const isNeeded = ofFile.some(({ lost }) => lost === undefined);
    const lost = isNeeded ? [] : [...new Set(ofFile.flatMap((one) => one.lost ?? []))];
    return [{ cluster: first.cluster, file: first.file, what: describeWhat(ofFile), lost }];
  });
}

/** What is missing in one line: `the control cluster does not let us create leases.coordination.k8s.io …: apply FILE`. */
export function describeMissing(missing: readonly Permission[]): string {
  return missingByFile(missing)
    .map(({ cluster, file, what, lost }) => {
      const without = lost.length === 0 ? '' : ` (without: ${lost.join('; ')})`;
      return `the ${cluster} cluster does not let us ${cut(what)}: apply ${file}${without}`;
    })
    .join('; ');
}

function describeWhat(missing: readonly Permission[]): string[] {
  return [...Map.groupBy(missing, ({ attributes }) => whereOf(attributes))].map(
    ([where, some]) => `${[...new Set(some.map(({ attributes: { verb } }) => verb))].join(', ')} ${where}`,
  );
}

function cut(what: readonly string[]): string {
  const more = what.length > MOST_NAMED ? `, and ${what.length - MOST_NAMED} more` : '';
  return `${what.slice(0, MOST_NAMED).join('; ')}${more}`;
}

/** `machines/status.machine.sapcloud.io in namespace x`. */
function whereOf({ group, resource, subresource, namespace, name }: AccessAttributes): string {
  const path = subresource === undefined ? resource : `${resource}/${subresource}`;
  const object = name === undefined ? '' : ` ${name}`;
  const scope = namespace === undefined ? '' : ` in namespace ${namespace}`;
  return `${path}.${group === '' ? 'core' : group}${object}${scope}`;
}
