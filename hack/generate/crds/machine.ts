import { MACHINE_CONDITION_TYPES } from '../../../pkg/apis/machine/v1alpha1/conditions.ts';
import type { Definition } from './definition.ts';
import { nodeCondition, nodeTemplate } from './node.ts';
import { classNamed, duration, MACHINE_CLASS_KEPT, notNegative, PROVIDER_ID_KEPT, SPEC_PRESENT } from './rules.ts';
import { flag, int32, listOf, mapOf, object, oneOf, type Schema, text, time } from './schema.ts';

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
    class: classSpec('The MachineClass, in the namespace of the Machine, that says how the VM is made.'),
    creationTimeout: timeout(
      'creationTimeout',
      'How long a machine may take to join the cluster before it is Failed; overrides --machine-creation-timeout.',
    ),
    disableHealthTimeout: flag(
      'True: an unhealthy machine never becomes Failed by timeout. Meant for in-place updates by hand.',
    ),
    drainTimeout: timeout(
      'drainTimeout',
      'How long the drain may take before the machine is deleted by force; overrides --machine-drain-timeout.',
    ),
    healthTimeout: timeout(
      'healthTimeout',
      'How long a machine may be unhealthy before it is Failed; overrides --machine-health-timeout.',
    ),
    inPlaceUpdateTimeout: timeout(
      'inPlaceUpdateTimeout',
      'How long an in-place update may take before it has failed; overrides --machine-inplace-update-timeout.',
    ),
    machinePreserveTimeout: timeout(
      'machinePreserveTimeout',
      'How long a preserved machine is kept; overrides --machine-preserve-timeout.',
    ),
    maxEvictRetries: int32('How often an eviction is tried in a drain; overrides --machine-max-evict-retries.', {
      'x-kubernetes-validations': [notNegative('maxEvictRetries')],
    }),
    nodeConditions: text(
      'Types of Node conditions, separated by commas, that make the machine unhealthy when they are not False; overrides --node-conditions.',
    ),
    nodeTemplate: nodeTemplate(),
    providerID: text(
      'Identity of the VM at the provider. Set when a VM is known, and not changed afterwards; leave it empty otherwise.',
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
  return object('The template from which Machines are made.', {
    metadata: {
      description:
        'Labels, annotations and finalizers that the Machines get. A MachineDeployment rolls its machines when they change.',
      type: 'object',
      properties: {
        annotations: mapOf('Annotations of the Machines.', { type: 'string' }),
        finalizers: listOf('Finalizers of the Machines.', { type: 'string' }),
        labels: boundedLabels('Labels of the Machines; the selector must select them.'),
      },
      'x-kubernetes-preserve-unknown-fields': true,
    },
    spec: machineSpec('What the Machines should be.'),
  });
}

/** What was last done to a machine. */
export function lastOperation(description: string): Schema {
  return object(description, {
    description: text('What was done, or why it failed. For a deletion also the step that it has reached.'),
    errorCode: text('Code of the error when the VM could not be created or initialized.'),
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
      lastOperation: lastOperation('What failed.'),
      name: text('Name of the Machine.'),
      ownerRef: text('Name of the MachineSet that the Machine belongs to.'),
      providerID: text('Identity of the VM at the provider.'),
    }),
  );
}

function currentStatus(): Schema {
  return object('The phase of the machine, and when it began.', {
    lastUpdateTime: time('When the phase began: base of the health and in-place timeouts.'),
    phase: text(
      'Pending, Available, Running, Terminating, Unknown, Failed, CrashLoopBackOff, InPlaceUpdating, InPlaceUpdateSuccessful or InPlaceUpdateFailed; empty until a VM is confirmed.',
    ),
    preserveExpiryTime: time('The machine is preserved until then.'),
    timeoutActive: flag('True while the machine waits to join the cluster.'),
  });
}

/** An addition of this project: the original's CRDs prune it. */
export const MACHINE_CONDITIONS = 'machineConditions';

function machineConditions(): Schema {
  return listOf(
    'What is known of the machine, as conditions in the usual form. For display: nothing is decided by them.',
    object(
      'A condition of the machine.',
      {
        lastTransitionTime: time('When the status last changed.'),
        message: text('Details, for humans.'),
        reason: text('Cause of the last change, in one word.'),
        status: text('True, False or Unknown.'),
        type: text(oneOf(MACHINE_CONDITION_TYPES)),
      },
      { required: ['status', 'type'] },
    ),
    { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] },
  );
}

function machineStatus(): Schema {
  return object('What is known of the machine.', {
    addresses: listOf(
      'Addresses of the VM; only kept when there is no target cluster, or when one is external.',
      object(
        'An address of the VM.',
        { address: text('The address.'), type: text('Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.') },
        { required: ['address', 'type'] },
      ),
    ),
    conditions: listOf('The conditions of the Node.', nodeCondition()),
    currentStatus: currentStatus(),
    lastKnownState: text('State that the driver keeps here for its next call; opaque.'),
    lastOperation: lastOperation('What was last done to the machine.'),
    [MACHINE_CONDITIONS]: machineConditions(),
  });
}

/** The kind Machine. */
export const machine: Definition = {
  kind: 'Machine',
  plural: 'machines',
  shortName: 'mc',
  description: 'One virtual machine that should exist, and the Node that it becomes.',
  columns: [
    { name: 'Status', type: 'string', jsonPath: '.status.currentStatus.phase', description: 'Phase of the machine.' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Age of the object.' },
    { name: 'Node', type: 'string', jsonPath: '.metadata.labels.node', description: 'Name of the Node.' },
    {
      name: 'ProviderID',
      type: 'string',
      jsonPath: '.spec.providerID',
      description: 'Identity of the VM at the provider.',
      priority: 1,
    },
  ],
  hasStatus: true,
  hasScale: false,
  properties: {
    spec: { ...machineSpec('What the machine should be.'), 'x-kubernetes-validations': [classNamed('class')] },
    status: machineStatus(),
  },
  rules: [SPEC_PRESENT, PROVIDER_ID_KEPT, MACHINE_CLASS_KEPT],
};
