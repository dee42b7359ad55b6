import { DEFAULT_CLIENT_NAME } from './autoscaler.ts';
import { OWN_CONTROLLERS } from './controllers.ts';
import { controllersIn, type FlagSection } from './flag-section.ts';

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
  /** As it would be typed, empty if left out. A function where the programs differ. */
  readonly default?: string | ((program: Program) => string);
  readonly help: string;
  /** Heading of `--help` and of the reference. */
  readonly group: string;
  /** Which programs act on it; the others accept it with a warning, so that manifests can be shared. */
  readonly programs: readonly Program[];
  /** Smallest and largest value; of durations in milliseconds, where 0 is the smallest unless said. */
  readonly min?: number;
  readonly max?: number;
  /** A smaller value is accepted, as the original does, and this one used instead, which a warning says. */
  readonly atLeast?: number;
  readonly oneOf?: readonly string[];
  /** Accepted for the original's sake, without effect, or without any yet. */
  readonly unused?: true;
}

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
  group: string,
  programs: readonly Program[],
  flags: readonly (Omit<Flag, 'group' | 'programs'> & Partial<Pick<Flag, 'programs'>>)[],
): readonly Flag[] {
  return flags.map((one) => ({ group, programs, ...one }));
}

/** Ours, in the order of `--help`. Names and defaults are the original's where it has them. */
export const OWN_FLAGS: readonly Flag[] = [
  ...section('Clusters', ALL, [
    {
      name: 'control-kubeconfig',
      kind: 'string',
      help: 'Kubeconfig of the cluster that holds the Machines. If empty, the target cluster is used; "inClusterConfig" uses the service account of this pod.',
    },
    {
      name: 'target-kubeconfig',
      kind: 'string',
      help: 'Kubeconfig of the cluster that the Machines join as Nodes. If empty, the service account of this pod is used, otherwise the default kubeconfig; "none" means that there is no target cluster, and requires --control-kubeconfig. With --cells and --control-kubeconfig, and without --cell-kubeconfig-secret: the one target cluster of all cells.',
    },
    {
      name: 'namespace',
      kind: 'string',
      default: 'default',
      help: 'Namespace in the control cluster of the Machines, classes, Secrets and, unless --leader-elect-resource-namespace is set, Leases.',
    },
    {
      name: 'controllers',
      kind: 'list',
      default: '*',
      programs: [RUN],
      help: `Controllers to run: "*", or a comma-separated list of ${OWN_CONTROLLERS.join(', ')}. With leader election, controllers that share a Lease must run together.`,
    },
  ]),
  ...section(
    'Cells',
    [RUN],
    [
      {
        name: 'cells',
        kind: 'string',
        help: 'Label selector of namespaces of the control cluster. Each of them is managed as if a process of its own did: with its Machines, target cluster, outages and limits. --namespace is then only that of the Leases.',
      },
      {
        name: 'cell-namespaces',
        kind: 'list',
        help: 'In place of --cells: names of the namespaces, separated by commas. Nothing of any other namespace is read, so roles in each of them are enough.',
      },
      {
        name: 'cell-kubeconfig-secret',
        kind: 'string',
        help: 'With cells: name of the Secret in each namespace whose key "kubeconfig" leads to its target cluster. Required, unless --target-kubeconfig is none, or names one target cluster for all cells.',
      },
      {
        name: 'cell-token-secret',
        kind: 'string',
        help: 'With --cell-kubeconfig-secret: name of the Secret in each namespace whose key "token" takes the place of the tokenFile in the kubeconfig.',
      },
      {
        name: 'cell-max-target-mib',
        kind: 'int',
        default: '32',
        min: 1,
        help: 'With cells: the most in MiB that a target cluster may send in one answer, and that its objects of one kind may take as JSON. A cell whose target has more waits. 32 MiB are enough for about 2,000 Nodes; reading an answer takes several times its size of the heap.',
      },
      {
        name: 'cell-shards',
        kind: 'int',
        default: '16',
        min: 1,
        max: 256,
        help: 'With cells: number of Leases among which the namespaces are divided, and thereby the largest number of replicas that share the work. Must be the same in all replicas.',
      },
    ],
  ),
  ...section('Drivers', MACHINES, [
    {
      name: 'driver',
      kind: 'list',
      help: 'Driver of a provider, as <provider>=<address>; may be repeated. The address is unix:///path, or dns:///host:port?ca=FILE&cert=FILE&key=FILE with mutual TLS; on loopback also dns:///127.0.0.1:port?insecure=true in plain text.',
    },
    {
      name: 'driver-qps',
      kind: 'list',
      help: 'Maximum calls per second to the driver of a provider for each credentials Secret, as <provider>=<number>; may be repeated. A provider that is not listed has no limit.',
    },
  ]),
  ...section('Machines', MACHINES, [
    {
      name: 'machine-creation-timeout',
      kind: 'duration',
      default: '20m',
      help: 'Maximum time for a machine to join the cluster, counted from when its VM exists; a machine that gets no VM fails after the same time.',
    },
    {
      name: 'machine-health-timeout',
      kind: 'duration',
      default: '10m',
      help: 'How long a machine may be unhealthy before it is replaced; 0s replaces it immediately. To never replace a machine, set spec.disableHealthTimeout.',
    },
    {
      name: 'machine-drain-timeout',
      kind: 'duration',
      default: '2h',
      help: 'Maximum time to drain the Node of a machine that is being deleted; after it, the remaining pods are deleted.',
    },
    {
      name: 'forced-deletion-timeout',
      kind: 'duration',
      default: '5m',
      help: 'For machines with deletion policy forced: how long deleting the VM may fail before the Machine is removed anyway.',
    },
    {
      name: 'machine-inplace-update-timeout',
      kind: 'duration',
      default: '20m',
      help: 'Maximum time for an in-place update, counted from when the Node is drained; after it, the update has failed.',
    },
    {
      name: 'machine-preserve-timeout',
      kind: 'duration',
      default: '96h',
      help: 'How long a machine is preserved, counted from when preservation starts.',
    },
    {
      name: 'machine-max-evict-retries',
      kind: 'int',
      default: '360',
      min: 0,
      help: 'Maximum number of attempts to evict a pod before it is deleted.',
    },
    {
      name: 'machine-pv-detach-timeout',
      kind: 'duration',
      default: '2m',
      help: "Maximum time that a drain waits for a volume to detach, after the pod's grace period.",
    },
    {
      name: 'machine-pv-reattach-timeout',
      kind: 'duration',
      default: '1m30s',
      help: 'Maximum time that a drain waits for a volume to attach to another Node.',
    },
    {
      name: 'node-conditions',
      kind: 'list',
      default: 'KernelDeadlock,ReadonlyFilesystem,DiskPressure,NetworkUnavailable',
      help: 'Node conditions that make a machine unhealthy unless they are False. If empty, only Ready is checked.',
    },
    {
      name: 'bootstrap-token-auth-extra-groups',
      kind: 'string',
      help: 'Value of auth-extra-groups in bootstrap tokens.',
    },
    {
      name: 'resource-exhausted-retry',
      kind: 'duration',
      default: '10m',
      help: 'Maximum delay between retries while the provider has no capacity; 0 means 10m.',
    },
    {
      name: 'autoscaler-scaledown-annotation-during-rollout',
      kind: 'bool',
      default: 'true',
      programs: SETS,
      help: 'Prevent the cluster-autoscaler from removing Nodes of a MachineDeployment during a rollout, and Nodes that have just replaced others.',
    },
  ]),
  ...section('Safety', MACHINES, [
    {
      name: 'safety-up',
      kind: 'int',
      default: '2',
      min: 0,
      programs: SETS,
      help: 'Freeze a MachineSet, so that it creates no more machines, when it exceeds its replicas plus surge by this number of machines; a MachineSet without a MachineDeployment, when it exceeds twice its replicas by this number.',
    },
    {
      name: 'safety-down',
      kind: 'int',
      default: '1',
      min: 0,
      programs: SETS,
      help: 'Unfreeze a MachineSet when it is this number of machines below the freeze limit; values greater than --safety-up are treated as --safety-up.',
    },
    {
      name: 'machine-safety-overshooting-period',
      kind: 'duration',
      default: '1m',
      atLeast: 100,
      programs: SETS,
      help: 'How often to count machines; they are also counted when one is created, removed or adopted, and when a size changes.',
    },
    {
      name: 'machine-safety-orphan-vms-period',
      kind: 'duration',
      default: '15m',
      atLeast: 1_000,
      help: 'How often to check the provider for VMs without a Machine, and for Machines without a VM.',
    },
    {
      name: 'machine-safety-orphan-vms-grace',
      kind: 'duration',
      default: '1m',
      min: 1_000,
      help: 'Minimum time between the two checks that must both find a VM without a Machine, or a Machine without a VM, before any action is taken; or no VM of a MachineClass, before its forcibly removed Machines are forgotten.',
    },
    {
      name: 'machine-safety-orphan-vms-dry-run',
      kind: 'bool',
      default: 'false',
      help: 'Report VMs without a Machine, but do not delete them.',
    },
    {
      name: 'machine-safety-apiserver-statuscheck-period',
      kind: 'duration',
      default: '1m',
      atLeast: 1_000,
      programs: ALL,
      help: 'How often to probe the API servers; must not be shorter than the timeout.',
    },
    {
      name: 'machine-safety-apiserver-statuscheck-timeout',
      kind: 'duration',
      default: '30s',
      atLeast: 1_000,
      programs: ALL,
      help: 'How long an API server may be unreachable before an outage starts, during which nothing is changed; also the maximum age of the last successful contact for destructive actions.',
    },
    {
      name: 'machine-safety-grace',
      kind: 'duration',
      default: '2m',
      help: 'Grace period after becoming leader, or after an outage, during which no machine becomes Failed.',
    },
    {
      name: 'zone-unhealthy-threshold',
      kind: 'float',
      default: '0.5',
      min: 0,
      max: 1,
      help: 'Stop replacing unhealthy machines of a zone once this fraction of them is unhealthy (zones with at least 3 machines), if at least half of those became unhealthy within 5 minutes; 1 disables the check.',
    },
  ]),
  ...section('Leader election', ALL, [
    {
      name: 'leader-elect',
      kind: 'bool',
      default: 'true',
      help: 'Act only while holding the Lease. If false, the other leader election flags are not checked.',
    },
    {
      name: 'leader-elect-lease-duration',
      kind: 'duration',
      default: '15s',
      min: NANOSECOND_MS,
      help: 'How long other candidates wait after the last renewal before they take over the Lease.',
    },
    {
      name: 'leader-elect-renew-deadline',
      kind: 'duration',
      default: '10s',
      min: NANOSECOND_MS,
      help: 'How long the leader acts after its last renewal; must be shorter than the lease duration.',
    },
    {
      name: 'leader-elect-retry-period',
      kind: 'duration',
      default: '2s',
      min: NANOSECOND_MS,
      help: 'How often to try to acquire or renew the Lease. With cells, a Lease is renewed three times within the renew deadline, if that is less often.',
    },
    {
      name: 'leader-elect-resource-lock',
      kind: 'string',
      default: 'leases',
      oneOf: ['leases'],
      help: 'Type of the leader election lock.',
    },
    {
      name: 'leader-elect-resource-namespace',
      kind: 'string',
      help: 'Namespace of the Leases. If empty, the namespace of the Machines; with another one, the namespace of the Machines can be deleted while the process runs.',
    },
  ]),
  ...section('Server', ALL, [
    {
      name: 'address',
      kind: 'address',
      default: '0.0.0.0',
      help: 'Address on which to serve metrics and health checks.',
    },
    {
      name: 'port',
      kind: 'int',
      default: (program) => (program === MACHINE ? '10259' : '10258'),
      min: 1,
      max: 65535,
      help: 'Port on which to serve metrics and health checks.',
    },
    {
      name: 'status-page',
      kind: 'bool',
      default: 'false',
      help: 'Serve a read-only status page for browsers under /ui/: machines, rollouts, drains and outages. Like the metrics, it is not authenticated.',
    },
    {
      name: 'profiling',
      kind: 'bool',
      default: 'false',
      help: 'Serve profiling data under /debug/, on loopback only; a heap snapshot contains credentials.',
    },
    {
      name: 'contention-profiling',
      kind: 'bool',
      default: 'false',
      unused: true,
      help: 'Accepted for compatibility; has no effect.',
    },
  ]),
  ...section('Autoscaler', SETS, [
    {
      name: 'autoscaler-grpc-address',
      kind: 'string',
      help: 'Address on which to serve cluster-autoscaler (provider externalgrpc): host:port with the TLS flags below, unix:///path/to/socket, or a loopback port in plain text. If empty, it is not served.',
    },
    {
      name: 'autoscaler-tls-cert',
      kind: 'string',
      help: 'PEM file with the certificate presented to autoscalers. The three files are reloaded when they change.',
    },
    {
      name: 'autoscaler-tls-key',
      kind: 'string',
      help: 'PEM file with the private key of that certificate.',
    },
    {
      name: 'autoscaler-tls-client-ca',
      kind: 'string',
      help: 'PEM file with the certificate authorities that sign the certificates of autoscalers.',
    },
    {
      name: 'autoscaler-client-name',
      kind: 'list',
      default: DEFAULT_CLIENT_NAME,
      help: 'Names accepted in the certificate of an autoscaler, as its common name or an alternative name (DNS, URI); may be repeated. With --cells, an annotation of each namespace says so instead.',
    },
    {
      name: 'nodes',
      kind: 'list',
      help: 'Limits of a node group, as <min>:<max>:<namespace>.<MachineDeployment>; may be repeated. MachineDeployments that are not listed take their limits from annotations machine.sapcloud.io/cluster-api-autoscaler-node-group-min-size and -max-size.',
    },
    {
      name: 'autoscaler-gpu-label',
      kind: 'string',
      default: 'gardener.cloud/accelerator',
      help: 'Label of Nodes with a GPU, as reported to autoscalers.',
    },
    {
      name: 'autoscaler-gpu-types',
      kind: 'list',
      help: 'Values of the GPU label, as reported to autoscalers.',
    },
  ]),
  ...section('Tuning', ALL, [
    {
      name: 'machine-concurrent-syncs',
      kind: 'int',
      default: '50',
      min: 1,
      programs: [RUN],
      help: 'Number of Machines that are reconciled concurrently.',
    },
    {
      name: 'machine-set-concurrent-syncs',
      kind: 'int',
      default: '10',
      min: 1,
      programs: [RUN],
      help: 'Number of MachineSets, and of MachineDeployments, that are reconciled concurrently.',
    },
    {
      name: 'concurrent-syncs',
      kind: 'int',
      default: (program) => (program === MACHINE ? '50' : '10'),
      min: 1,
      programs: [MANAGER, MACHINE],
      help: 'Number of objects of each kind that are reconciled concurrently.',
    },
    {
      name: 'kube-api-qps',
      kind: 'rate',
      default: '0',
      min: 0,
      help: "Maximum requests per second to each API server; 0 means no limit, so that only the server's own limits apply.",
    },
    {
      name: 'kube-api-burst',
      kind: 'int',
      default: '30',
      min: 0,
      help: 'Burst of requests allowed beyond --kube-api-qps.',
    },
    {
      name: 'min-resync-period',
      kind: 'duration',
      default: '12h',
      unused: true,
      help: 'Accepted for compatibility; caches are kept exact by watches and are not resynced periodically.',
    },
    {
      name: 'kube-api-content-type',
      kind: 'media-type',
      default: 'application/vnd.kubernetes.protobuf',
      unused: true,
      help: 'Accepted for compatibility; JSON is always used.',
    },
    {
      name: 'controller-start-interval',
      kind: 'duration',
      default: '0s',
      unused: true,
      help: 'Accepted for compatibility; has no effect.',
    },
    {
      name: 'cloud-provider',
      kind: 'string',
      unused: true,
      help: 'Accepted for compatibility; has no effect.',
    },
  ]),
  ...section('Logging', ALL, [
    {
      name: 'v',
      kind: 'int',
      default: '0',
      help: 'Log verbosity: 4 and higher log each reconciliation, and stack traces of errors.',
    },
    {
      name: 'log-format',
      kind: 'string',
      default: 'json',
      oneOf: ['json', 'text'],
      help: 'Format of log lines: json for programs, text for people.',
    },
    {
      name: 'vmodule',
      kind: 'string',
      unused: true,
      help: 'Accepted for compatibility; has no effect.',
    },
    {
      name: 'log-flush-frequency',
      kind: 'duration',
      default: '5s',
      min: -Infinity,
      unused: true,
      help: 'Accepted for compatibility; every line is written immediately.',
    },
  ]),
];

/** Every flag, those of other APIs last. */
export function flagsWith(sections: readonly FlagSection[]): readonly Flag[] {
  return [
    ...OWN_FLAGS.map((flag) =>
      flag.name === 'controllers' ? { ...flag, help: `${flag.help} ${onRequest(sections)}` } : flag,
    ),
    ...sections.flatMap(flagsOf),
  ];
}

/** Those of one API. */
export function flagsOf({ heading, flags }: FlagSection): readonly Flag[] {
  return section(heading, [RUN], flags);
}

function onRequest(sections: readonly FlagSection[]): string {
  const names = sections.flatMap(controllersIn);
  const allOf = sections.flatMap((one) => Object.entries(one.allOf ?? {}));
  return (
    [
      `${inWords(names)} run only if they are named, also as "*,${names[0]}"`,
      ...allOf.map(([name, all]) => `"${name}" means ${inWords(all)}`),
    ].join('; ') + '.'
  );
}

function inWords(names: readonly string[]): string {
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

/** Flags of older releases and of klog that manifests still carry; accepted with a warning, whatever their value. */
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
export function defaultOf({ default: usual = '' }: Flag, program: Program): string {
  return typeof usual === 'string' ? usual : usual(program);
}
