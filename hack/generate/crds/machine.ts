import { MACHINE_CONDITION_TYPES } from '../../../pkg/apis/machine/v1alpha1/conditions.ts';
import { ZONE_LABEL } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import { type Definition, escaped, wide } from './definition.ts';
import { nodeCondition, nodeTemplate } from './node.ts';
import { classNamed, duration, MACHINE_CLASS_KEPT, notNegative, PROVIDER_ID_KEPT, SPEC_PRESENT } from './rules.ts';
import { flag, int32, listOf, mapOf, object, oneOf, quantity, type Schema, text, time } from './schema.ts';

/** Reference to a MachineClass. */
export function classSpec(description: string): Schema {
  return object(description, {
    apiGroup: text('API group of the class, for information only.'),
    kind: text('Kind of the class: MachineClass.'),
    name: text('Name of the class.'),
  });
}

function timeout(field: string, description: string): Schema {
  return text(`${description} A Go duration such as 10m or 1h30m.`, { 'x-kubernetes-validations': [duration(field)] });
}

/** The spec of a Machine, also within templates. */
function machineSpec(description: string): Schema {
  return object(description, {
    class: classSpec('MachineClass with the properties of the VM, in the namespace of the Machine.'),
    creationTimeout: timeout(
      'creationTimeout',
      'Time until a machine that has not joined the cluster becomes Failed; overrides --machine-creation-timeout.',
    ),
    disableHealthTimeout: flag(
      'Disables the health timeout: an unhealthy machine never becomes Failed because of it. For manual in-place updates.',
    ),
    drainTimeout: timeout(
      'drainTimeout',
      'Time until the remaining pods of a drain are deleted by force; overrides --machine-drain-timeout.',
    ),
    healthTimeout: timeout(
      'healthTimeout',
      'Time until an unhealthy machine becomes Failed; overrides --machine-health-timeout.',
    ),
    inPlaceUpdateTimeout: timeout(
      'inPlaceUpdateTimeout',
      'Time until an in-place update fails; overrides --machine-inplace-update-timeout.',
    ),
    machinePreserveTimeout: timeout(
      'machinePreserveTimeout',
      'Time for which a preserved machine is kept; overrides --machine-preserve-timeout.',
    ),
    maxEvictRetries: int32(
      'Maximum number of eviction attempts for a pod in a drain; overrides --machine-max-evict-retries.',
      {
        'x-kubernetes-validations': [notNegative('maxEvictRetries')],
      },
    ),
    nodeConditions: text(
      'Types of Node conditions, separated by commas, that make the machine unhealthy unless they are False; overrides --node-conditions.',
    ),
    nodeTemplate: nodeTemplate(),
    providerID: text(
      'ID of the VM at the provider. Set by the controller when the VM exists, and immutable afterwards. Leave it empty for a new machine.',
    ),
  });
}

/** Limits that only bound the cost of the rules; labels cannot be longer than 63 characters anyway. */
const MAX_LABELS = 1000;
const MAX_LABEL_LENGTH = 1000;

/** Labels that rules look at. */
export function boundedLabels(description: string): Schema {
  return mapOf(description, { type: 'string', maxLength: MAX_LABEL_LENGTH }, { maxProperties: MAX_LABELS });
}

/** The template from which a set makes its Machines. */
export function machineTemplate(): Schema {
  return object('Template for new Machines.', {
    metadata: {
      description:
        'Labels, annotations and finalizers of the Machines. Changing them starts a rollout of the MachineDeployment.',
      type: 'object',
      properties: {
        annotations: mapOf('Annotations of the Machines.', { type: 'string' }),
        finalizers: listOf('Finalizers of the Machines.', { type: 'string' }),
        labels: boundedLabels('Labels of the Machines; the selector must match them.'),
      },
      'x-kubernetes-preserve-unknown-fields': true,
    },
    spec: machineSpec('Desired state of the Machines.'),
  });
}

/** What was last done to a machine. */
export function lastOperation(description: string): Schema {
  return object(description, {
    description: text('Description of the operation, or its error. For a deletion, includes the stage.'),
    errorCode: text('Code of the error if the VM could not be created or initialized.'),
    lastUpdateTime: time('When the operation was last reported.'),
    state: text('Processing, Failed or Successful.'),
    type: text('Create, Update, InPlaceUpdate, DrainNode, HealthCheck or Delete.'),
  });
}

/** Failed machines as their sets and deployments list them. */
export function failedMachines(): Schema {
  return listOf(
    'Machines whose last operation failed, at most the 100 newest.',
    object('One failed machine.', {
      lastOperation: lastOperation('The failed operation.'),
      name: text('Name of the Machine.'),
      ownerRef: text('Name of the MachineSet of the Machine.'),
      providerID: text('ID of the VM at the provider.'),
    }),
  );
}

function currentStatus(): Schema {
  return object('Phase of the machine, and its start.', {
    lastUpdateTime: time('Start of the phase, from which the timeouts for health and in-place updates count.'),
    phase: text(
      'Pending, Available, Running, Terminating, Unknown, Failed, CrashLoopBackOff, InPlaceUpdating, InPlaceUpdateSuccessful or InPlaceUpdateFailed; empty until a VM is confirmed.',
    ),
    preserveExpiryTime: time('Time until which the machine is preserved.'),
    timeoutActive: flag('Whether the machine is waiting to join the cluster.'),
  });
}

/** Additions of this project: the original's CRDs prune them. */
export const MACHINE_CONDITIONS = 'machineConditions';
export const VM_CAPACITY = 'vmCapacity';

function machineConditions(): Schema {
  return listOf(
    'Conditions of the machine, for display; no decision depends on them.',
    object(
      'A condition of the machine.',
      {
        lastTransitionTime: time('When the status last changed.'),
        message: text('Human-readable details.'),
        reason: text('Reason of the last change, in CamelCase.'),
        status: text('True, False or Unknown.'),
        type: text(oneOf(MACHINE_CONDITION_TYPES)),
      },
      { required: ['status', 'type'] },
    ),
    { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] },
  );
}

function machineStatus(): Schema {
  return object('Observed state of the machine.', {
    addresses: listOf(
      'Addresses of the VM; set only if there is no target cluster, or if one of them is external.',
      object(
        'An address of the VM.',
        { address: text('The address.'), type: text('Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.') },
        { required: ['address', 'type'] },
      ),
    ),
    conditions: listOf('Conditions of the Node.', nodeCondition()),
    currentStatus: currentStatus(),
    lastKnownState: text('Opaque state that the driver stores for its next call.'),
    lastOperation: lastOperation('Last operation on the machine.'),
    [MACHINE_CONDITIONS]: machineConditions(),
    [VM_CAPACITY]: mapOf(
      'Resources of the VM, as reported by the driver at creation. For information only: no decision depends on them.',
      quantity(),
    ),
  });
}

/** The kind Machine. */
export const machine: Definition = {
  kind: 'Machine',
  plural: 'machines',
  shortName: 'mc',
  description: 'A virtual machine and the Node that it becomes.',
  columns: [
    { name: 'Status', type: 'string', jsonPath: '.status.currentStatus.phase', description: 'Phase of the machine.' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Age of the object.' },
    { name: 'Node', type: 'string', jsonPath: '.metadata.labels.node', description: 'Name of the Node.' },
    {
      name: 'ProviderID',
      type: 'string',
      jsonPath: '.spec.providerID',
      description: 'ID of the VM at the provider.',
      priority: 1,
    },
    wide('Class', 'string', '.spec.class.name', 'MachineClass of the VM.'),
    wide(
      'Zone',
      'string',
      `.spec.nodeTemplate.metadata.labels.${escaped(ZONE_LABEL)}`,
      'Zone of the Node, where the template names it; otherwise that of the MachineClass applies.',
    ),
    wide(
      'Since',
      'date',
      '.status.currentStatus.lastUpdateTime',
      'Time since which the machine has been in this phase.',
    ),
    wide(
      'Preserved',
      'string',
      '.status.currentStatus.preserveExpiryTime',
      'Time until which the machine is preserved.',
    ),
    wide('Reason', 'string', '.status.lastOperation.errorCode', 'Error code of the last operation.'),
    wide(
      'Message',
      'string',
      '.status.lastOperation.description',
      'What is being done, what it waits for, or what failed.',
    ),
  ],
  hasStatus: true,
  hasScale: false,
  properties: {
    spec: { ...machineSpec('Desired state of the machine.'), 'x-kubernetes-validations': [classNamed('class')] },
    status: machineStatus(),
  },
  rules: [SPEC_PRESENT, PROVIDER_ID_KEPT, MACHINE_CLASS_KEPT],
};
