import { formatDuration } from '../../pkg/apis/duration.ts';
import { DRIVER_CODES, type DriverCode } from '../../pkg/driver/error.ts';
import { retryOf, type RetriedCall } from '../../pkg/driver/retry.ts';
import { OPERATION_CODES, type OperationCode } from '../../pkg/controllers/machines/operation-codes.ts';
import { table } from './table.ts';

interface Meaning {
  readonly cause: string;
  readonly remedy: string;
}

/** What users can do about each code. */
const MEANINGS: Readonly<Record<Exclude<DriverCode, 'OK'>, Meaning>> = {
  Canceled: {
    cause: 'The call was aborted, for instance because the machine is being deleted.',
    remedy: 'None: the VM is looked up by name before anything else happens.',
  },
  Unknown: { cause: 'The driver has no specific error.', remedy: 'Check the log of the driver.' },
  InvalidArgument: {
    cause: "The class's `providerSpec` or Secret is wrong; the message names the member.",
    remedy: 'Correct the MachineClass or the Secret: the call is then repeated at once.',
  },
  DeadlineExceeded: {
    cause: 'The provider did not answer the driver in time.',
    remedy: 'None, unless the code persists: then check the status of the provider.',
  },
  NotFound: {
    cause: 'There is no VM of this machine.',
    remedy: 'None: the VM is created, or counts as deleted. Only this code means that a VM does not exist.',
  },
  AlreadyExists: {
    cause: 'Another object of that name exists at the provider.',
    remedy: 'Remove it at the provider.',
  },
  PermissionDenied: {
    cause: 'The credentials are valid but not sufficient.',
    remedy: 'Grant the permission in the message, or use other credentials in the Secret.',
  },
  ResourceExhausted: {
    cause: 'A quota is used up, or the zone has no capacity left.',
    remedy: 'Raise the quota or use another zone. All machines of the class wait together.',
  },
  FailedPrecondition: {
    cause:
      'A problem must be resolved first; also: the call came from a former leader, or from a manager whose Lease was restored from a backup (fencing token).',
    remedy:
      'Follow the message. For tokens, see [restoring](../operations/running.md#restoring-the-control-cluster-from-a-backup).',
  },
  Aborted: { cause: 'Stopped halfway, or still in progress.', remedy: 'None: the call is retried.' },
  OutOfRange: {
    cause: 'Several VMs match one machine.',
    remedy: 'None: an orphan collection starts at once and removes VMs without a Machine.',
  },
  Unimplemented: {
    cause: 'The driver does not implement this method.',
    remedy: 'None if the method is optional; otherwise use a newer driver.',
  },
  Internal: { cause: 'An error in the driver or the provider.', remedy: 'Check the log of the driver.' },
  Unavailable: {
    cause:
      'The provider cannot be reached, or the driver cannot be: it is down, was restarted, or did not answer in time.',
    remedy: 'Check that the driver is running, and that `--driver` has its address.',
  },
  DataLoss: { cause: 'Data is lost permanently.', remedy: 'Delete the machine.' },
  Unauthenticated: { cause: 'The credentials are not accepted.', remedy: 'Put new credentials into the Secret.' },
  Uninitialized: {
    cause: 'The provider is creating the VM. This is not a failure: the last operation shows what it is waiting for.',
    remedy: 'None: the call is repeated every few seconds. If the code persists, check what the last operation names.',
  },
};

/** What users can do about each reason to wait. */
const OPERATION_MEANINGS: Readonly<Record<OperationCode, Meaning & { readonly operation: string }>> = {
  NeverAsked: {
    operation: 'Create, Delete',
    cause:
      'The MachineClass is missing or of another kind, or no driver is configured for its provider, since the Machine was created: no provider was asked for a VM. A deletion keeps the code.',
    remedy:
      'Create the MachineClass, correct `spec.class`, or configure the driver. Such a Machine can be deleted without class and driver.',
  },
  FinalizerRefused: {
    operation: 'Create',
    cause:
      'The API server, a policy or a webhook refuses our finalizer since the Machine was created: no provider was asked for a VM.',
    remedy: 'Correct the policy or webhook; at the creation timeout, the Machine becomes Failed.',
  },
  PreparationFailed: {
    operation: 'Create',
    cause:
      'The API server refuses what the creation needs beforehand: the Secret of the class, or the bootstrap token.',
    remedy: 'Allow the request in the message.',
  },
  RecordRefused: {
    operation: 'Create, Delete',
    cause: 'The API server, a policy or a webhook refuses to record the VM, or to change the finalizer.',
    remedy: 'Correct the policy or webhook; use Node names of at most 63 characters.',
  },
  ClusterOutage: {
    operation: 'Delete',
    cause: 'The API server of the target cluster does not answer, or its cluster was set back.',
    remedy: 'Restore the API server; the deletion then continues.',
  },
  ZoneUnhealthy: {
    operation: 'HealthCheck',
    cause: 'Too many machines of the zone became unhealthy at once.',
    remedy: 'Restore the zone, or delete a Machine to force its replacement.',
  },
  ReplacementStopped: {
    operation: 'HealthCheck',
    cause: 'The MachineDeployment allows no replacement.',
    remedy: 'Raise annotation `machine.sapcloud.io/max-replacements`.',
  },
  ReplacementPaced: {
    operation: 'HealthCheck',
    cause: 'As many machines were replaced within this health timeout as are allowed at once.',
    remedy: 'Wait, or delete the Machine to have it replaced now.',
  },
  TooManyReplacements: {
    operation: 'HealthCheck',
    cause: 'As many others of the MachineDeployment are being replaced as it allows.',
    remedy: 'Wait, or raise annotation `machine.sapcloud.io/max-replacements`.',
  },
  SafetyGrace: {
    operation: 'HealthCheck',
    cause: 'The state of the clusters is too recent, after a start or an outage.',
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

Generated from \`pkg/driver/error.ts\`, \`pkg/driver/retry.ts\` and \`pkg/controllers/machines/operation-codes.ts\`.

## Drivers

The codes that a driver returns when a call fails. The name of the code is in \`status.lastOperation.errorCode\` of the Machine and, with the
message of the provider, in \`status.lastOperation.description\`. Numbers are those of the contract (\`proto/machine/driver/v1/driver.proto\`) and of the
metric label \`error_code\`.

The delay before the call is repeated starts at 5 s (15 s for \`ResourceExhausted\`) and doubles with each failure in a row, up to the values in the last columns;
it is reduced at random by up to a half, and never shorter than the provider requests. A change of the Machine, its MachineClass or the Secret
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

Where no driver was asked, or none has failed, \`status.lastOperation.errorCode\` shows why the operation does not continue. This code determines
the next steps; the description next to it is for people.

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
