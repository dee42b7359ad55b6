import { DEFAULT_CLIENT_NAME } from './autoscaler.ts';

/** The programs that take flags: the one-process layout, and the original's two. */
export type Program = 'machinist run' | 'machine-controller-manager' | 'machine-controller';

/** What a flag's value must be. Durations are Go durations (`10m`, `1h30m`), and need a unit. */
export type FlagKind =
  | 'bool'
  | 'int'
  | 'float'
  /** Requests a second: `inf` and `nan` mean no limit, as 0 does. */
  | 'rate'
  | 'duration'
  | 'string'
  | 'list'
  | 'address'
  | 'media-type';

/** One flag: the row from which parsing, `--help`, validation and docs/reference/flags.md are made. */
export interface Flag {
  readonly name: string;
  readonly kind: FlagKind;
  /** As it would be typed. A function where the programs differ. */
  readonly default: string | ((program: Program) => string);
  readonly help: string;
  readonly group: FlagGroup;
  /** Which programs act on it; the others accept it with a warning, so that manifests can be shared. */
  readonly programs: readonly Program[];
  /** Smallest and largest value; of durations in milliseconds. */
  readonly min?: number;
  readonly max?: number;
  /** A smaller value is accepted, as the original does, and this one used instead, which a warning says. */
  readonly atLeast?: number;
  readonly oneOf?: readonly string[];
  /** Accepted for the original's sake, without effect, or without any yet. */
  readonly unused?: true;
}

/** Headings of `--help` and of the reference. */
export type FlagGroup =
  'Clusters' | 'Drivers' | 'Machines' | 'Safety' | 'Leader election' | 'Server' | 'Autoscaler' | 'Tuning' | 'Logging';

/** The least that Go's durations can tell from nothing. */
const NANOSECOND_MS = 0.000_001;

const RUN: Program = 'machinist run';
const MANAGER: Program = 'machine-controller-manager';
const MACHINE: Program = 'machine-controller';
const ALL: readonly Program[] = [RUN, MANAGER, MACHINE];
const MACHINES: readonly Program[] = [RUN, MACHINE];
const SETS: readonly Program[] = [RUN, MANAGER];

/** Flags of one group, which all of `programs` act on unless they say otherwise. */
function section(
  group: FlagGroup,
  programs: readonly Program[],
  flags: readonly (Omit<Flag, 'group' | 'programs'> & Partial<Pick<Flag, 'programs'>>)[],
): readonly Flag[] {
  return flags.map((one) => ({ group, programs, ...one }));
}

/** Every flag, in the order of `--help`. Names and defaults are the original's where it has them. */
export const FLAGS: readonly Flag[] = [
  ...section('Clusters', ALL, [
    {
      name: 'control-kubeconfig',
      kind: 'string',
      default: '',
      help: 'Kubeconfig of the cluster that holds the Machines. Empty: the same as the target. "inClusterConfig": the service account of this pod.',
    },
    {
      name: 'target-kubeconfig',
      kind: 'string',
      default: '',
      help: 'Kubeconfig of the cluster whose Nodes the Machines become. Empty: the service account of this pod, else the default kubeconfig. "none": there is no such cluster; --control-kubeconfig is then mandatory.',
    },
    {
      name: 'namespace',
      kind: 'string',
      default: 'default',
      help: 'Namespace of the Machines, classes, Secrets and Leases in the control cluster.',
    },
    {
      name: 'controllers',
      kind: 'list',
      default: '*',
      programs: [RUN],
      help: 'Which controllers run: "*", or a comma list of machine-deployment, machine-set, safety.overshoot, machine, machine-class, secret, safety.orphan-vms, safety.unmanaged-nodes; mirantis, cluster-api, ironcore.scheduler, ironcore.lifecycle, ironcore.pools and ironcore.machines run only where they are named, also as "*,mirantis"; "ironcore" is the first two that begin with it. With leader election, those of one Lease only together.',
    },
    {
      name: 'cluster-api-watch-filter',
      kind: 'string',
      default: '',
      programs: [RUN],
      help: 'With controller cluster-api: only Machines and Clusters of cluster.x-k8s.io whose label cluster.x-k8s.io/watch-filter has this value are looked after. Empty: all of the namespace.',
    },
    {
      name: 'ironcore-pool',
      kind: 'list',
      default: '',
      programs: [RUN],
      help: 'MachinePool of IronCore that is served, as <name>=<address>; may be repeated. Adds controllers ironcore.pools and ironcore.machines. At the address a runtime speaks IRI: unix:///path, or dns:///host:port?ca=FILE&cert=FILE&key=FILE with mutual TLS; on loopback also dns:///127.0.0.1:port?insecure=true in plain text.',
    },
  ]),
  ...section('Drivers', MACHINES, [
    {
      name: 'driver',
      kind: 'list',
      default: '',
      help: 'Driver of a provider, as <provider>=<address>; may be repeated. Addresses: unix:///path, or dns:///host:port?ca=FILE&cert=FILE&key=FILE with mutual TLS; on loopback also dns:///127.0.0.1:port?insecure=true in plain text.',
    },
    {
      name: 'driver-qps',
      kind: 'list',
      default: '',
      help: 'How many calls a second the driver of a provider gets at most for each Secret with credentials, as <provider>=<number>; may be repeated. A provider that is not named has no limit.',
    },
  ]),
  ...section('Machines', MACHINES, [
    {
      name: 'machine-creation-timeout',
      kind: 'duration',
      default: '20m',
      min: 0,
      help: 'How long a machine may take to join, counted from when its VM exists; one that gets no VM at all fails after the same time.',
    },
    {
      name: 'machine-health-timeout',
      kind: 'duration',
      default: '10m',
      min: 0,
      help: 'How long a machine may be unhealthy before it is replaced; 0s: it is replaced at once. Never: spec.disableHealthTimeout.',
    },
    {
      name: 'machine-drain-timeout',
      kind: 'duration',
      default: '2h',
      min: 0,
      help: 'How long a deleted machine waits for its pods to leave before they are deleted.',
    },
    {
      name: 'forced-deletion-timeout',
      kind: 'duration',
      default: '5m',
      min: 0,
      help: 'How long the provider may fail to delete the VM of a machine with deletion policy forced before the Machine goes without that.',
    },
    {
      name: 'machine-inplace-update-timeout',
      kind: 'duration',
      default: '20m',
      min: 0,
      help: 'How long an update in place may take, counted from when the Node is drained; after it, the update has failed.',
    },
    {
      name: 'machine-preserve-timeout',
      kind: 'duration',
      default: '96h',
      min: 0,
      help: 'How long a machine is preserved, counted from when that begins.',
    },
    {
      name: 'machine-max-evict-retries',
      kind: 'int',
      default: '360',
      min: 0,
      help: 'How often the eviction of a pod is tried before the pod is deleted.',
    },
    {
      name: 'machine-pv-detach-timeout',
      kind: 'duration',
      default: '2m',
      min: 0,
      help: "How long a drain waits for a volume to be detached, after its pod's own grace period.",
    },
    {
      name: 'machine-pv-reattach-timeout',
      kind: 'duration',
      default: '1m30s',
      min: 0,
      help: 'How long a drain waits for a volume to be attached elsewhere.',
    },
    {
      name: 'node-conditions',
      kind: 'list',
      default: 'KernelDeadlock,ReadonlyFilesystem,DiskPressure,NetworkUnavailable',
      help: 'Node conditions that make a machine unhealthy unless they are False. Empty: only Ready counts.',
    },
    {
      name: 'bootstrap-token-auth-extra-groups',
      kind: 'string',
      default: '',
      help: 'Value of auth-extra-groups in bootstrap tokens.',
    },
    {
      name: 'resource-exhausted-retry',
      kind: 'duration',
      default: '10m',
      min: 0,
      help: 'Longest wait between two tries while the provider has no capacity; 0 means 10m.',
    },
    {
      name: 'autoscaler-scaledown-annotation-during-rollout',
      kind: 'bool',
      default: 'true',
      programs: SETS,
      help: 'Keep the cluster-autoscaler from removing Nodes of a MachineDeployment while it rolls, and Nodes that have just replaced others.',
    },
  ]),
  ...section('Safety', MACHINES, [
    {
      name: 'safety-up',
      kind: 'int',
      default: '2',
      min: 0,
      programs: SETS,
      help: 'How many machines beyond replicas and surge (of a lone set: beyond twice its replicas) freeze a MachineSet: it creates none any more.',
    },
    {
      name: 'safety-down',
      kind: 'int',
      default: '1',
      min: 0,
      programs: SETS,
      help: 'How many machines below the number that freezes a MachineSet unfreeze it; more than --safety-up counts as --safety-up.',
    },
    {
      name: 'machine-safety-overshooting-period',
      kind: 'duration',
      default: '1m',
      min: 0,
      atLeast: 100,
      programs: SETS,
      help: 'How often machines are counted when nothing happens; they are also counted when one comes, goes or is adopted, and when a size changes.',
    },
    {
      name: 'machine-safety-orphan-vms-period',
      kind: 'duration',
      default: '15m',
      min: 0,
      atLeast: 1_000,
      help: 'How often the provider is asked for VMs without a Machine, and for Machines without a VM.',
    },
    {
      name: 'machine-safety-orphan-vms-grace',
      kind: 'duration',
      default: '1m',
      min: 1_000,
      help: 'Least time between the two looks that must both show a VM without a Machine, or a Machine without a VM, before anything is done about it; or no VM of a MachineClass, before Machines of it that were let go by force are forgotten.',
    },
    {
      name: 'machine-safety-orphan-vms-dry-run',
      kind: 'bool',
      default: 'false',
      help: 'Tell of VMs without a Machine, and delete none.',
    },
    {
      name: 'machine-safety-apiserver-statuscheck-period',
      kind: 'duration',
      default: '1m',
      min: 0,
      atLeast: 1_000,
      programs: ALL,
      help: 'How often the API servers are probed; not below the timeout.',
    },
    {
      name: 'machine-safety-apiserver-statuscheck-timeout',
      kind: 'duration',
      default: '30s',
      min: 0,
      atLeast: 1_000,
      programs: ALL,
      help: 'How long an API server may be unreachable before an outage begins, in which nothing is changed, and how old a proof of life may be for what destroys.',
    },
    {
      name: 'machine-safety-grace',
      kind: 'duration',
      default: '2m',
      min: 0,
      help: 'How long after the start of leadership, or after an outage, no machine becomes Failed.',
    },
    {
      name: 'zone-unhealthy-threshold',
      kind: 'float',
      default: '0.5',
      min: 0,
      max: 1,
      help: 'Share of the machines of a zone (of 3 or more) from which on none of them is replaced for bad health, if at least half of the unhealthy ones became so within 5 minutes; 1: replace them all the same.',
    },
  ]),
  ...section('Leader election', ALL, [
    {
      name: 'leader-elect',
      kind: 'bool',
      default: 'true',
      help: 'Act only while holding the Lease. Without it, the flags of leader election may have any value.',
    },
    {
      name: 'leader-elect-lease-duration',
      kind: 'duration',
      default: '15s',
      min: NANOSECOND_MS,
      help: 'How long others wait for a silent leader.',
    },
    {
      name: 'leader-elect-renew-deadline',
      kind: 'duration',
      default: '10s',
      min: NANOSECOND_MS,
      help: 'How long the leader acts after its last renewal; below the lease duration.',
    },
    {
      name: 'leader-elect-retry-period',
      kind: 'duration',
      default: '2s',
      min: NANOSECOND_MS,
      help: 'How often the Lease is tried or renewed.',
    },
    {
      name: 'leader-elect-resource-lock',
      kind: 'string',
      default: 'leases',
      oneOf: ['leases'],
      help: 'Kind of lock.',
    },
  ]),
  ...section('Server', ALL, [
    {
      name: 'address',
      kind: 'address',
      default: '0.0.0.0',
      help: 'Address on which metrics and health are served.',
    },
    {
      name: 'port',
      kind: 'int',
      default: (program) => (program === MACHINE ? '10259' : '10258'),
      min: 1,
      max: 65535,
      help: 'Port on which metrics and health are served.',
    },
    {
      name: 'profiling',
      kind: 'bool',
      default: 'false',
      help: 'Serve profiles of the process under /debug/, on loopback only; a heap snapshot holds credentials.',
    },
    {
      name: 'contention-profiling',
      kind: 'bool',
      default: 'false',
      unused: true,
      help: 'Accepted, without effect.',
    },
  ]),
  ...section('Autoscaler', SETS, [
    {
      name: 'autoscaler-grpc-address',
      kind: 'string',
      default: '',
      help: 'Where cluster-autoscalers are served (their provider externalgrpc): host:port with the TLS flags below, unix:///path/to/socket, or, in plain text, a port of loopback. Empty: nowhere.',
    },
    {
      name: 'autoscaler-tls-cert',
      kind: 'string',
      default: '',
      help: 'File of the certificate that autoscalers are shown, PEM. The three files are read again when they change.',
    },
    {
      name: 'autoscaler-tls-key',
      kind: 'string',
      default: '',
      help: 'File of its private key, PEM.',
    },
    {
      name: 'autoscaler-tls-client-ca',
      kind: 'string',
      default: '',
      help: 'File of the authorities that sign the certificates of autoscalers, PEM.',
    },
    {
      name: 'autoscaler-client-name',
      kind: 'list',
      default: DEFAULT_CLIENT_NAME,
      help: 'Names that the certificate of an autoscaler may show: its common name, or an alternative name (DNS, URI); may be repeated.',
    },
    {
      name: 'nodes',
      kind: 'list',
      default: '',
      help: 'Limits of a node group, as <min>:<max>:<namespace>.<MachineDeployment>; may be repeated. MachineDeployments that are not named have the limits of their annotations machine.sapcloud.io/cluster-api-autoscaler-node-group-min-size and -max-size.',
    },
    {
      name: 'autoscaler-gpu-label',
      kind: 'string',
      default: 'gardener.cloud/accelerator',
      help: 'Label of Nodes with a GPU, which autoscalers are told.',
    },
    {
      name: 'autoscaler-gpu-types',
      kind: 'list',
      default: '',
      help: 'Values of that label.',
    },
  ]),
  ...section('Tuning', ALL, [
    {
      name: 'machine-concurrent-syncs',
      kind: 'int',
      default: '50',
      min: 1,
      programs: [RUN],
      help: 'How many Machines are reconciled at once.',
    },
    {
      name: 'machine-set-concurrent-syncs',
      kind: 'int',
      default: '10',
      min: 1,
      programs: [RUN],
      help: 'How many MachineSets, and how many MachineDeployments, are reconciled at once.',
    },
    {
      name: 'concurrent-syncs',
      kind: 'int',
      default: (program) => (program === MACHINE ? '50' : '10'),
      min: 1,
      programs: [MANAGER, MACHINE],
      help: 'How many objects of one kind are reconciled at once.',
    },
    {
      name: 'kube-api-qps',
      kind: 'rate',
      default: '0',
      min: 0,
      help: "Limit of requests per second to each API server; 0: none, the server's own fairness decides.",
    },
    {
      name: 'kube-api-burst',
      kind: 'int',
      default: '30',
      min: 0,
      help: 'Requests beyond --kube-api-qps that may be sent at once.',
    },
    {
      name: 'min-resync-period',
      kind: 'duration',
      default: '12h',
      min: 0,
      unused: true,
      help: 'Accepted; caches are exact and are not re-read by time.',
    },
    {
      name: 'kube-api-content-type',
      kind: 'media-type',
      default: 'application/vnd.kubernetes.protobuf',
      unused: true,
      help: 'Accepted; JSON is spoken.',
    },
    {
      name: 'controller-start-interval',
      kind: 'duration',
      default: '0s',
      min: 0,
      unused: true,
      help: 'Accepted, without effect.',
    },
    {
      name: 'cloud-provider',
      kind: 'string',
      default: '',
      unused: true,
      help: 'Accepted, without effect.',
    },
  ]),
  ...section('Logging', ALL, [
    {
      name: 'v',
      kind: 'int',
      default: '0',
      help: 'Verbosity: 4 and more log each pass, and the stacks of errors.',
    },
    {
      name: 'log-format',
      kind: 'string',
      default: 'json',
      oneOf: ['json', 'text'],
      help: 'How log lines look: json for programs, text for people.',
    },
    {
      name: 'vmodule',
      kind: 'string',
      default: '',
      unused: true,
      help: 'Accepted, without effect.',
    },
    {
      name: 'log-flush-frequency',
      kind: 'duration',
      default: '5s',
      unused: true,
      help: 'Accepted; every line is written at once.',
    },
  ]),
];

/**
 * Flags of older releases and of klog that manifests still carry; accepted with a warning, whatever their value.
 */
export const IGNORED_FLAGS: readonly string[] = [
  'alsologtostderr',
  'add-dir-header',
  'log-backtrace-at',
  'log-dir',
  'log-file',
  'log-file-max-size',
  'logtostderr',
  'one-output',
  'skip-headers',
  'skip-log-headers',
  'stderrthreshold',
  'delete-migrated-machine-class',
  'machine-safety-apiserver-statuscheck-interval',
  'node-condition',
];

/** The default of `flag` in `program`, as it would be typed. */
export function defaultOf(flag: Flag, program: Program): string {
  return typeof flag.default === 'string' ? flag.default : flag.default(program);
}
