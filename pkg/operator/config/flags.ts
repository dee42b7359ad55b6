import { DEFAULT_CLIENT_NAME } from './autoscaler.ts';
import { OWN_CONTROLLERS } from './controllers.ts';
import {
  address,
  bool,
  duration,
  type Flag,
  type FlagRow,
  float,
  int,
  list,
  mediaType,
  type Program,
  rate,
  text,
} from './flag.ts';
import { controllersIn, type FlagSection } from './flag-section.ts';

/** The least that Go's durations can tell from nothing. */
const NANOSECOND_MS = 0.000_001;

const RUN: Program = 'machinist run';
const MANAGER: Program = 'machine-controller-manager';
const MACHINE: Program = 'machine-controller';
const ALL: readonly Program[] = [RUN, MANAGER, MACHINE];
const MACHINES: readonly Program[] = [RUN, MACHINE];
const SETS: readonly Program[] = [RUN, MANAGER];

/** Flags of one group, by name, in their order. */
function section(
  group: string,
  programs: readonly Program[],
  rows: Readonly<Record<string, FlagRow>>,
): readonly Flag[] {
  return Object.entries(rows).map(([name, row]) => ({ name, group, programs, ...row }));
}

/** Ours, in the order of `--help`. Names and defaults are the original's where it has them. */
export const OWN_FLAGS: readonly Flag[] = [
  ...section('Clusters', ALL, {
    'control-kubeconfig': text(
      'Kubeconfig of the cluster that holds the Machines. If empty, the target cluster is used; "inClusterConfig" uses the service account of this pod.',
    ),
    'target-kubeconfig': text(
      'Kubeconfig of the cluster that the Machines join as Nodes. If empty, the service account of this pod is used, otherwise the default kubeconfig; "none" means that there is no target cluster, and requires --control-kubeconfig. With --cells and --control-kubeconfig, and without --cell-kubeconfig-secret: the one target cluster of all cells.',
    ),
    namespace: text(
      'Namespace in the control cluster of the Machines, classes, Secrets and, unless --leader-elect-resource-namespace is set, Leases.',
      { default: 'default' },
    ),
    controllers: list(
      `Controllers to run: "*", or a comma-separated list of ${OWN_CONTROLLERS.join(', ')}. With leader election, controllers that share a Lease must run together.`,
      { default: '*', programs: [RUN] },
    ),
  }),
  ...section('Cells', [RUN], {
    cells: text(
      'Label selector of namespaces of the control cluster. Each of them is managed as if a process of its own did: with its Machines, target cluster, outages and limits. --namespace is then only that of the Leases.',
    ),
    'cell-namespaces': list(
      'In place of --cells: names of the namespaces, separated by commas. Nothing of any other namespace is read, so roles in each of them are enough.',
    ),
    'cell-kubeconfig-secret': text(
      'With cells: name of the Secret in each namespace whose key "kubeconfig" leads to its target cluster. Required, unless --target-kubeconfig is none, or names one target cluster for all cells.',
    ),
    'cell-token-secret': text(
      'With --cell-kubeconfig-secret: name of the Secret in each namespace whose key "token" takes the place of the tokenFile in the kubeconfig.',
    ),
    'cell-max-target-mib': int(
      'With cells: the most in MiB that a target cluster may send in one answer, and that its objects of one kind may take as JSON. A cell whose target has more waits. 32 MiB are enough for about 2,000 Nodes; reading an answer takes several times its size of the heap.',
      { default: '32', min: 1 },
    ),
    'cell-shards': int(
      'With cells: number of Leases among which the namespaces are divided, and thereby the largest number of replicas that share the work. Must be the same in all replicas.',
      { default: '16', min: 1, max: 256 },
    ),
  }),
  ...section('Drivers', MACHINES, {
    driver: list(
      'Driver of a provider, as <provider>=<address>; may be repeated. The address is unix:///path, or dns:///host:port?ca=FILE&cert=FILE&key=FILE with mutual TLS; on loopback also dns:///127.0.0.1:port?insecure=true in plain text.',
    ),
    'driver-qps': list(
      'Maximum calls per second to the driver of a provider for each credentials Secret, as <provider>=<number>; may be repeated. A provider that is not listed has no limit.',
    ),
  }),
  ...section('Machines', MACHINES, {
    'machine-creation-timeout': duration(
      'Maximum time for a machine to join the cluster, counted from when its VM exists; a machine that gets no VM fails after the same time.',
      { default: '20m' },
    ),
    'machine-health-timeout': duration(
      'How long a machine may be unhealthy before it is replaced; 0s replaces it immediately. To never replace a machine, set spec.disableHealthTimeout.',
      { default: '10m' },
    ),
    'machine-drain-timeout': duration(
      'Maximum time to drain the Node of a machine that is being deleted; after it, the remaining pods are deleted.',
      { default: '2h' },
    ),
    'forced-deletion-timeout': duration(
      'For machines with deletion policy forced: how long deleting the VM may fail before the Machine is removed anyway.',
      { default: '5m' },
    ),
    'machine-inplace-update-timeout': duration(
      'Maximum time for an in-place update, counted from when the Node is drained; after it, the update has failed.',
      { default: '20m' },
    ),
    'machine-preserve-timeout': duration('How long a machine is preserved, counted from when preservation starts.', {
      default: '96h',
    }),
    'machine-max-evict-retries': int('Maximum number of attempts to evict a pod before it is deleted.', {
      default: '360',
      min: 0,
    }),
    'machine-pv-detach-timeout': duration(
      "Maximum time that a drain waits for a volume to detach, after the pod's grace period.",
      { default: '2m' },
    ),
    'machine-pv-reattach-timeout': duration('Maximum time that a drain waits for a volume to attach to another Node.', {
      default: '1m30s',
    }),
    'node-conditions': list(
      'Node conditions that make a machine unhealthy unless they are False. If empty, only Ready is checked. If MachineSets and Machines are managed by two programs, both need the same value.',
      { default: 'KernelDeadlock,ReadonlyFilesystem,DiskPressure,NetworkUnavailable', programs: ALL },
    ),
    'bootstrap-token-auth-extra-groups': text('Value of auth-extra-groups in bootstrap tokens.'),
    'resource-exhausted-retry': duration(
      'Maximum delay between retries while the provider has no capacity; 0 means 10m.',
      { default: '10m' },
    ),
    'autoscaler-scaledown-annotation-during-rollout': bool(
      'Prevent the cluster-autoscaler from removing Nodes of a MachineDeployment during a rollout, and Nodes that have just replaced others.',
      { default: 'true', programs: SETS },
    ),
  }),
  ...section('Safety', MACHINES, {
    'safety-up': int(
      'Freeze a MachineSet, so that it creates no more machines, when it exceeds its replicas plus surge by this number of machines; a MachineSet without a MachineDeployment, when it exceeds twice its replicas by this number.',
      { default: '2', min: 0, programs: SETS },
    ),
    'safety-down': int(
      'Unfreeze a MachineSet when it is this number of machines below the freeze limit; values greater than --safety-up are treated as --safety-up.',
      { default: '1', min: 0, programs: SETS },
    ),
    'machine-safety-overshooting-period': duration(
      'How often to count machines; they are also counted when one is created, removed or adopted, and when a size changes.',
      { default: '1m', atLeast: 100, programs: SETS },
    ),
    'machine-safety-orphan-vms-period': duration(
      'How often to check the provider for VMs without a Machine, and for Machines without a VM.',
      { default: '15m', atLeast: 1_000 },
    ),
    'machine-safety-orphan-vms-grace': duration(
      'Minimum time between the two checks that must both find a VM without a Machine, or a Machine without a VM, before any action is taken; or no VM of a MachineClass, before its forcibly removed Machines are forgotten.',
      { default: '1m', min: 1_000 },
    ),
    'machine-safety-orphan-vms-dry-run': bool('Report VMs without a Machine, but do not delete them.', {
      default: 'false',
    }),
    'machine-safety-apiserver-statuscheck-period': duration(
      'How often to probe the API servers; must not be shorter than the timeout.',
      { default: '1m', atLeast: 1_000, programs: ALL },
    ),
    'machine-safety-apiserver-statuscheck-timeout': duration(
      'How long an API server may be unreachable before an outage starts, during which nothing is changed; also the maximum age of the last successful contact for destructive actions.',
      { default: '30s', atLeast: 1_000, programs: ALL },
    ),
    'machine-safety-grace': duration(
      'Grace period after becoming leader, or after an outage, during which no machine becomes Failed.',
      { default: '2m' },
    ),
    'zone-unhealthy-threshold': float(
      'Stop replacing unhealthy machines of a zone once this fraction of them is unhealthy (zones with at least 3 machines), if at least half of those became unhealthy within 5 minutes; 1 disables the check.',
      { default: '0.5', min: 0, max: 1 },
    ),
  }),
  ...section('Leader election', ALL, {
    'leader-elect': bool(
      'Act only while holding the Lease. If false, the other leader election flags are not checked.',
      { default: 'true' },
    ),
    'leader-elect-lease-duration': duration(
      'How long other candidates wait after the last renewal before they take over the Lease.',
      { default: '15s', min: NANOSECOND_MS },
    ),
    'leader-elect-renew-deadline': duration(
      'How long the leader acts after its last renewal; must be shorter than the lease duration.',
      { default: '10s', min: NANOSECOND_MS },
    ),
    'leader-elect-retry-period': duration(
      'How often to try to acquire or renew the Lease. With cells, a Lease is renewed three times within the renew deadline, if that is less often.',
      { default: '2s', min: NANOSECOND_MS },
    ),
    'leader-elect-resource-lock': text('Type of the leader election lock.', { default: 'leases', oneOf: ['leases'] }),
    'leader-elect-resource-namespace': text(
      'Namespace of the Leases. If empty, the namespace of the Machines; with another one, the namespace of the Machines can be deleted while the process runs.',
    ),
  }),
  ...section('Server', ALL, {
    address: address('Address on which to serve metrics and health checks.', { default: '0.0.0.0' }),
    port: int('Port on which to serve metrics and health checks.', {
      default: (program) => (program === MACHINE ? '10259' : '10258'),
      min: 1,
      max: 65535,
    }),
    'status-page': bool(
      'Serve a read-only status page for browsers under /ui/: machines, rollouts, drains and outages. Like the metrics, it is not authenticated.',
      { default: 'false' },
    ),
    profiling: bool('Serve profiling data under /debug/, on loopback only; a heap snapshot contains credentials.', {
      default: 'false',
    }),
    'contention-profiling': bool('Accepted for compatibility; has no effect.', { default: 'false', unused: true }),
  }),
  ...section('Autoscaler', SETS, {
    'autoscaler-grpc-address': text(
      'Address on which to serve cluster-autoscaler (provider externalgrpc): host:port with the TLS flags below, unix:///path/to/socket, or a loopback port in plain text. If empty, it is not served.',
    ),
    'autoscaler-tls-cert': text(
      'PEM file with the certificate presented to autoscalers. The three files are reloaded when they change.',
    ),
    'autoscaler-tls-key': text('PEM file with the private key of that certificate.'),
    'autoscaler-tls-client-ca': text(
      'PEM file with the certificate authorities that sign the certificates of autoscalers.',
    ),
    'autoscaler-client-name': list(
      'Names accepted in the certificate of an autoscaler, as its common name or an alternative name (DNS, URI); may be repeated. With --cells, an annotation of each namespace says so instead.',
      { default: DEFAULT_CLIENT_NAME },
    ),
    nodes: list(
      'Limits of a node group, as <min>:<max>:<namespace>.<MachineDeployment>; may be repeated. MachineDeployments that are not listed take their limits from annotations machine.sapcloud.io/cluster-api-autoscaler-node-group-min-size and -max-size.',
    ),
    'autoscaler-gpu-label': text('Label of Nodes with a GPU, as reported to autoscalers.', {
      default: 'gardener.cloud/accelerator',
    }),
    'autoscaler-gpu-types': list('Values of the GPU label, as reported to autoscalers.'),
  }),
  ...section('Tuning', ALL, {
    'machine-concurrent-syncs': int('Number of Machines that are reconciled concurrently.', {
      default: '50',
      min: 1,
      programs: [RUN],
    }),
    'machine-set-concurrent-syncs': int(
      'Number of MachineSets, and of MachineDeployments, that are reconciled concurrently.',
      { default: '10', min: 1, programs: [RUN] },
    ),
    'concurrent-syncs': int('Number of objects of each kind that are reconciled concurrently.', {
      default: (program) => (program === MACHINE ? '50' : '10'),
      min: 1,
      programs: [MANAGER, MACHINE],
    }),
    'kube-api-qps': rate(
      "Maximum requests per second to each API server; 0 means no limit, so that only the server's own limits apply.",
      { default: '0', min: 0 },
    ),
    'kube-api-burst': int('Burst of requests allowed beyond --kube-api-qps.', { default: '30', min: 0 }),
    'min-resync-period': duration(
      'Accepted for compatibility; caches are kept exact by watches and are not resynced periodically.',
      { default: '12h', unused: true },
    ),
    'kube-api-content-type': mediaType('Accepted for compatibility; JSON is always used.', {
      default: 'application/vnd.kubernetes.protobuf',
      unused: true,
    }),
    'controller-start-interval': duration('Accepted for compatibility; has no effect.', {
      default: '0s',
      unused: true,
    }),
    'cloud-provider': text('Accepted for compatibility; has no effect.', { unused: true }),
  }),
  ...section('Logging', ALL, {
    v: int('Log verbosity: 4 and higher log each reconciliation, and stack traces of errors.', { default: '0' }),
    'log-format': text('Format of log lines: json for programs, text for people.', {
      default: 'json',
      oneOf: ['json', 'text'],
    }),
    vmodule: text('Accepted for compatibility; has no effect.', { unused: true }),
    'log-flush-frequency': duration('Accepted for compatibility; every line is written immediately.', {
      default: '5s',
      min: -Infinity,
      unused: true,
    }),
  }),
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
