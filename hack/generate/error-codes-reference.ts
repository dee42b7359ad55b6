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
    remedy: 'None: the VM is asked for by name before anything else happens.',
  },
  Unknown: { cause: 'The driver knows no better.', remedy: "Look into the driver's log." },
  InvalidArgument: {
    cause: "The class's `providerSpec` or Secret is wrong; the message names the member.",
    remedy: 'Correct the MachineClass or the Secret: the call is then repeated at once.',
  },
  DeadlineExceeded: {
    cause: 'The provider did not answer the driver in time.',
    remedy: "None, unless it lasts: then check the provider's status.",
  },
  NotFound: {
    cause: 'There is no VM of this machine.',
    remedy: 'None: it is made, or counts as deleted. Only this code means that a VM is gone.',
  },
  AlreadyExists: {
    cause: 'Something of that name exists at the provider and is not this VM.',
    remedy: 'Remove it at the provider.',
  },
  PermissionDenied: {
    cause: 'The credentials are valid and do not suffice.',
    remedy: 'Grant what the message names, or put other credentials into the Secret.',
  },
  ResourceExhausted: {
    cause: 'A quota is used up, or the zone has no capacity left.',
    remedy: 'Raise the quota or use another zone. All machines of the class wait together.',
  },
  FailedPrecondition: {
    cause:
      'Something must be put right first; also: the call came from a manager that has been replaced, or whose Lease was set back (fencing token).',
    remedy:
      'Do what the message says. About tokens see [restoring](../operations/running.md#restoring-the-control-cluster-from-a-backup).',
  },
  Aborted: { cause: 'Stopped halfway, or still in progress.', remedy: 'None: it is asked again.' },
  OutOfRange: {
    cause: 'Several VMs match one machine.',
    remedy: 'None: VMs that no machine owns are looked for at once, and removed.',
  },
  Unimplemented: {
    cause: 'The driver does not implement this method.',
    remedy: 'None where the method is optional; else use a newer driver.',
  },
  Internal: { cause: 'A fault of the driver or the provider.', remedy: "Look into the driver's log." },
  Unavailable: {
    cause:
      'The provider cannot be reached, or the driver cannot be: it is down, was restarted, or did not answer in time.',
    remedy: 'See that the driver runs and that `--driver` names its address.',
  },
  DataLoss: { cause: 'Data is lost for good.', remedy: 'Delete the machine.' },
  Unauthenticated: { cause: 'The credentials are not accepted.', remedy: 'Put new credentials into the Secret.' },
  Uninitialized: {
    cause:
      'The provider has begun with the VM, and has not completed it yet. No failure: the last operation says what it waits for.',
    remedy: 'None: it is asked again every few seconds. If it lasts, see to what the last operation names.',
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
    remedy: 'Correct what refuses it; at the creation timeout the Machine becomes Failed.',
  },
  PreparationFailed: {
    operation: 'Create',
    cause:
      'The API server refuses what the creation needs beforehand: the Secret of the class, or the bootstrap token.',
    remedy: 'Allow what the message names.',
  },
  RecordRefused: {
    operation: 'Create, Delete',
    cause: 'The API server, a policy or a webhook refuses to record the VM, or to change the finalizer.',
    remedy: 'Correct what refuses it; give Nodes names of at most 63 characters.',
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
    cause: 'What is known of the clusters is too young, after a start or an outage.',
    remedy: 'None: it ends by itself.',
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

What a driver answers when a call fails. The name of the code is in \`status.lastOperation.errorCode\` of the Machine and, with the provider's own
words, in \`status.lastOperation.description\`. Numbers are those of the contract (\`proto/machine/driver/v1/driver.proto\`) and of the
metric label \`error_code\`.

The wait before the call is repeated begins at 5 s (15 s for \`ResourceExhausted\`) and doubles with each failure in a row, up to what the last columns
say; it is shortened at random by up to a half, and never shorter than the provider asked for. A change of the Machine, its MachineClass or the Secret
ends the wait.

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

Where no driver was asked, or none has failed, \`status.lastOperation.errorCode\` says why the operation does not continue. What is done next
follows from this word; the description beside it is for people.

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
