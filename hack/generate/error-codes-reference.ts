import { formatDuration } from '../../pkg/apis/duration.ts';
import { DRIVER_CODES, type DriverCode } from '../../pkg/driver/error.ts';
import { retryOf, type RetriedCall } from '../../pkg/driver/retry.ts';
import { OPERATION_CODES, type OperationCode } from '../../pkg/controllers/machine-facts/operation-codes.ts';
import { table } from './table.ts';

interface Meaning {
  readonly cause: string;
  readonly remedy: string;
}

/** Cause and remedy of each code. */
const MEANINGS: Readonly<Record<Exclude<DriverCode, 'OK'>, Meaning>> = {
  Canceled: {
    cause: 'The call was aborted, for instance because the machine is being deleted.',
    remedy: 'None: the next call first searches for the VM by name.',
  },
  Unknown: { cause: 'The driver has no specific error.', remedy: 'Check the log of the driver.' },
  InvalidArgument: {
    cause: 'The `providerSpec` or the Secret of the class is invalid; the message names the field.',
    remedy: 'Correct the MachineClass or the Secret: the call is then repeated immediately.',
  },
  DeadlineExceeded: {
    cause: 'The provider did not respond to the driver in time.',
    remedy: 'None, unless the code persists: then check the status of the provider.',
  },
  NotFound: {
    cause: 'There is no VM of this machine.',
    remedy:
      'None: the VM is created, or counts as deleted [if its Node is not Ready](../concepts/safety.md#vms-that-a-driver-does-not-find). Only this code means that a VM does not exist.',
  },
  AlreadyExists: {
    cause: 'Another object with that name exists at the provider.',
    remedy: 'Remove it at the provider.',
  },
  PermissionDenied: {
    cause: 'The credentials are valid but not sufficient.',
    remedy: 'Grant the permission in the message, or use other credentials in the Secret.',
  },
  ResourceExhausted: {
    cause: 'A quota is exhausted, or the zone has no capacity left.',
    remedy: 'Raise the quota or use another zone. All machines of the class wait.',
  },
  FailedPrecondition: {
    cause:
      'A problem must be resolved first; also: the call came from a former leader, or from a manager whose Lease was restored from a backup (fencing token).',
    remedy:
      'Follow the message. For tokens, see [restoring](../operations/outages.md#restoring-the-control-cluster-from-a-backup).',
  },
  Aborted: { cause: 'The operation was interrupted, or is still in progress.', remedy: 'None: the call is retried.' },
  OutOfRange: {
    cause: 'Several VMs match one machine.',
    remedy:
      'None: an orphan collection starts immediately and removes VMs without a Machine. If it may not delete, see OrphanVMsHeld; a machine in creation is then replaced after its creation timeout.',
  },
  Unimplemented: {
    cause: 'The driver does not implement this method.',
    remedy: 'None if the method is optional; otherwise use a newer driver.',
  },
  Internal: { cause: 'An error in the driver or the provider.', remedy: 'Check the log of the driver.' },
  Unavailable: {
    cause: 'The provider or the driver is unreachable: it is down, was restarted, or did not respond in time.',
    remedy: 'Check that the driver is running, and that `--driver` has its address.',
  },
  DataLoss: { cause: 'Data is lost permanently.', remedy: 'Delete the machine.' },
  Unauthenticated: { cause: 'The credentials are not accepted.', remedy: 'Write valid credentials to the Secret.' },
  Uninitialized: {
    cause: 'The provider is creating the VM. This is not a failure: the last operation shows what it is waiting for.',
    remedy:
      'None: the call is repeated every few seconds. If the code persists, check the cause in the last operation.',
  },
};

/** Cause and remedy of each reason to wait. */
const OPERATION_MEANINGS: Readonly<Record<OperationCode, Meaning & { readonly operation: string }>> = {
  NeverAsked: {
    operation: 'Create, Delete',
    cause:
      'Since the Machine was created, the MachineClass has been missing or has another kind, or no driver has been configured for its provider, so no VM was requested. A deletion keeps the code.',
    remedy:
      'Create the MachineClass, correct `spec.class`, or configure the driver. Such a Machine can be deleted without a class and a driver.',
  },
  FinalizerRefused: {
    operation: 'Create',
    cause:
      'Since the Machine was created, the API server, a policy or a webhook has rejected the finalizer of Machinist, so no VM was requested.',
    remedy: 'Correct the policy or webhook; at the creation timeout, the Machine becomes Failed.',
  },
  NameTaken: {
    operation: 'Create',
    cause:
      'A Machine in another namespace has the same name, and all [cells share one target cluster](../operations/cells.md#one-target-cluster), in which both would be the same Node.',
    remedy:
      'Find the other one with `kubectl get machines -A --field-selector metadata.name=NAME`, and delete the one that is not needed. The Node of the other one is not touched.',
  },
  PreparationFailed: {
    operation: 'Create, Delete',
    cause:
      'The API server rejects a prerequisite: reading the Secret of the class or, for a creation, writing the bootstrap token.',
    remedy: 'Allow the request in the message.',
  },
  VMBeingCreated: {
    operation: 'Create',
    cause: 'The provider is creating the VM. This is not a failure: the description says what it is waiting for.',
    remedy: 'None: the call is repeated every few seconds.',
  },
  VMBeingInitialized: {
    operation: 'Create',
    cause:
      'The VM is not initialized yet. If the state is Processing, the provider is initializing it; otherwise, the description says what prevents that.',
    remedy:
      'None while Processing: the call is repeated every few seconds. Otherwise, correct what the description says.',
  },
  NodeUnidentified: {
    operation: 'Create',
    cause:
      'All [cells share one target cluster](../operations/cells.md#one-target-cluster), and the Node shows no provider ID, or not that of the VM: it is not known whose it is.',
    remedy:
      'Have the kubelet or a cloud controller manager set `spec.providerID` of Nodes, or delete the Node of an earlier VM; at the creation timeout, the Machine becomes Failed.',
  },
  RecordRefused: {
    operation: 'Create, Delete',
    cause:
      'The API server, a policy or a webhook rejects the record of the VM (of one that is not initialized yet, the code is `VMBeingInitialized`), or a ' +
      'change of the finalizer.',
    remedy: 'Correct the policy or webhook; use Node names of at most 63 characters.',
  },
  WaitingForHooks: {
    operation: 'Delete',
    cause: 'Annotations of others hold up the drain, or the deletion of the VM. The description names them.',
    remedy: 'Wait for their owners to remove them, or remove them.',
  },
  DrainBlocked: {
    operation: 'Delete, DrainNode',
    cause: 'Pods cannot be evicted, or do not terminate, until someone acts. The description names them and says why.',
    remedy: 'See [what blocks a drain](../concepts/drain.md#what-blocks-a-drain).',
  },
  ClusterOutage: {
    operation: 'Delete',
    cause: 'The API server of the target cluster does not respond, or the cluster was restored to an earlier state.',
    remedy: 'Restore the API server; the deletion then continues.',
  },
  VMUnseen: {
    operation: 'Delete',
    cause: 'The driver finds no VM, but the Node of the Machine is Ready, so the VM is assumed to be running.',
    remedy:
      'Correct the MachineClass, its Secret or the tags of the VM [as the description says](../concepts/safety.md#vms-that-a-driver-does-not-find).',
  },
  NoNodesInTarget: {
    operation: 'HealthCheck',
    cause: 'None of the Nodes of the Machines is in the target cluster.',
    remedy:
      'Correct the kubeconfig of the target cluster, or, if the Nodes are lost, delete a Machine to force its replacement.',
  },
  ZoneUnhealthy: {
    operation: 'HealthCheck',
    cause: 'Too many machines of the zone became unhealthy at once.',
    remedy: 'Restore the zone, or delete a Machine to force its replacement.',
  },
  ReplacementStopped: {
    operation: 'Create, HealthCheck',
    cause: 'The MachineDeployment allows no replacements.',
    remedy: 'Raise annotation `machine.sapcloud.io/max-replacements`.',
  },
  ReplacementPaced: {
    operation: 'HealthCheck',
    cause: 'The maximum number of machines was already replaced within this health timeout.',
    remedy: 'Wait, or delete the Machine to replace it immediately.',
  },
  TooManyReplacements: {
    operation: 'Create, HealthCheck',
    cause:
      'The maximum number of machines of the MachineDeployment is already being replaced. Create: the Node has joined, but is not usable after the creation timeout.',
    remedy: 'Wait, or raise annotation `machine.sapcloud.io/max-replacements`.',
  },
  SafetyGrace: {
    operation: 'HealthCheck',
    cause: 'The process became leader, or an outage ended, too recently.',
    remedy: 'None: it ends automatically.',
  },
};

const CALLS: readonly { readonly call: RetriedCall; readonly title: string }[] = [
  { call: 'create', title: 'create' },
  { call: 'initialize', title: 'initialize' },
  { call: 'delete', title: 'delete' },
];

/** docs/reference/error-codes.md, from the codes and the table of retries. */
export async function errorCodesReference(): Promise<string> {
  return `# Error codes

Generated from \`pkg/driver/error.ts\`, \`pkg/driver/retry.ts\` and \`pkg/controllers/machine-facts/operation-codes.ts\`.

## Drivers

The codes that a driver returns when a call fails. The name of the code is in \`status.lastOperation.errorCode\` of the Machine and, with the
message of the provider, in \`status.lastOperation.description\`. Numbers are those of the contract (\`proto/machine/driver/v1/driver.proto\`) and of the
metric label \`error_code\`.

The delay before the call is repeated starts at 5 s (15 s for \`ResourceExhausted\`) and doubles with each consecutive failure, up to the values in the last columns;
it is reduced at random by up to a half, and is never shorter than the provider requests. A change of the Machine, its MachineClass or the Secret
ends the delay.

${await table(
  ['code', 'number', 'cause', 'remedy', ...CALLS.map(({ title }) => `longest wait: ${title}`)],
  DRIVER_CODES.filter((code) => code !== 'OK').map((code) => [
    `\`${code}\``,
    String(DRIVER_CODES.indexOf(code)),
    MEANINGS[code].cause,
    MEANINGS[code].remedy,
    ...CALLS.map(({ call }) => waitOf(call, code)),
  ]),
)}
## Operations that wait

If no driver call has failed, \`status.lastOperation.errorCode\` shows why the operation does not continue. The next steps depend on this code; the
description is for display only.

${await table(
  ['code', 'operation', 'cause', 'remedy'],
  OPERATION_CODES.map((code) => {
    const { operation, cause, remedy } = OPERATION_MEANINGS[code];
    return [`\`${code}\``, operation, cause, remedy];
  }),
)}`;
}

function waitOf(call: RetriedCall, code: DriverCode): string {
  // These are no failures: the machine goes on.
  if (code === 'NotFound' && call === 'delete') return '–';
  if (code === 'Unimplemented' && call === 'initialize') return '–';
  if (code === 'Uninitialized' && call === 'create') return '–';
  if (code === 'ResourceExhausted' && call === 'create') return '`--resource-exhausted-retry`';
  return formatDuration(retryOf(call, code).maxMs);
}
