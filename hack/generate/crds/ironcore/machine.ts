import type { Definition } from '../definition.ts';
import { listOf, mapOf, object, quantity, type Schema, text, time } from '../schema.ts';
import { AGE, COMPUTE, conditions, name, namedList, observedGeneration, OPEN, reference } from './parts.ts';
import { CLASS_KEPT, DETACHED_FIRST, exactlyOne, IMAGE_KEPT, KEY_NAMED, LABEL_NAME, SPEC_RULES } from './rules.ts';

/** Limits the cost of the rules. */
const MAX_ENTRIES = 128;
const DNS_LABEL = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$';

function template(description: string): Schema {
  return { ...object(description, {}), ...OPEN };
}

function sizeLimit(): Schema {
  return { description: 'Size of the disk. Defaults to a size that the pool determines.', ...quantity() };
}

function volume(): Schema {
  return object(
    'A volume, with exactly one source.',
    {
      name: name('Name of the entry.'),
      device: text('Device name in the machine, such as oda. Defaults to the first free one.', {
        pattern: '^[a-z]{2}[a-z]{1,2}$',
        maxLength: 4,
      }),
      volumeRef: reference('Volume in the same namespace.'),
      emptyDisk: object('Empty disk of the pool. Deprecated: use localDisk.', { sizeLimit: sizeLimit() }),
      localDisk: object('A disk of the pool, deleted with the machine.', {
        sizeLimit: sizeLimit(),
        image: text('Image with which the disk is created. Immutable.', { maxLength: 4096 }),
      }),
      ephemeral: object(
        'A Volume that is created for the Machine and deleted with it.',
        { volumeTemplate: template('Metadata and spec of the Volume.') },
        { required: ['volumeTemplate'] },
      ),
    },
    {
      required: ['name'],
      'x-kubernetes-validations': [exactlyOne('volumeRef', 'emptyDisk', 'localDisk', 'ephemeral'), IMAGE_KEPT],
    },
  );
}

function networkInterface(): Schema {
  return object(
    'A network interface, with exactly one source.',
    {
      name: name('Name of the entry.'),
      networkInterfaceRef: reference('NetworkInterface in the same namespace.'),
      ephemeral: object(
        'A NetworkInterface that is created for the Machine and deleted with it.',
        { networkInterfaceTemplate: template('Metadata and spec of the NetworkInterface.') },
        { required: ['networkInterfaceTemplate'] },
      ),
    },
    { required: ['name'], 'x-kubernetes-validations': [exactlyOne('networkInterfaceRef', 'ephemeral')] },
  );
}

function toleration(): Schema {
  return object(
    'A taint that is tolerated.',
    {
      key: text('Key of the taint. If unset, any key matches, and the operator must be Exists.', { maxLength: 317 }),
      operator: text('Equal: the value must be the same. Exists: any value matches. Defaults to Equal.', {
        enum: ['Equal', 'Exists'],
      }),
      value: text('Value of the taint.'),
      effect: text('Effect of the taint: NoSchedule or NoExecute. If unset, both match.', {
        enum: ['', 'NoSchedule', 'NoExecute'],
      }),
    },
    { 'x-kubernetes-validations': [KEY_NAMED] },
  );
}

function efiVariable(): Schema {
  return object(
    'A variable of EFI.',
    { name: name('Its name.'), uuid: text('Its UUID.'), value: text('Its value.') },
    { required: ['name', 'uuid', 'value'] },
  );
}

function spec(): Schema {
  return object(
    'Desired state of the machine.',
    {
      machineClassRef: reference('MachineClass, which determines the size of the machine. Immutable.', {
        'x-kubernetes-validations': [CLASS_KEPT],
      }),
      machinePoolSelector: mapOf('Labels that a MachinePool must have to be selected by the scheduler.', {
        type: 'string',
      }),
      machinePoolRef: reference(
        'MachinePool in which the machine runs. If unset, the scheduler selects one. Can be set only once.',
      ),
      image: text('Image of the first disk; older form. Immutable.', { maxLength: 4096 }),
      power: text('On or Off.', { enum: ['On', 'Off'], default: 'On' }),
      volumes: namedList('Volumes of the machine. The first one is the root disk.', volume(), {
        maxItems: MAX_ENTRIES,
      }),
      networkInterfaces: namedList('Network interfaces of the machine.', networkInterface(), { maxItems: MAX_ENTRIES }),
      ignitionRef: object(
        'Secret in the same namespace with the configuration for the first start of the machine.',
        {
          name: name('Name of the Secret.'),
          key: text('Key in the Secret. Defaults to ignition.yaml.', { maxLength: 253 }),
        },
        { required: ['name'], 'x-kubernetes-map-type': 'atomic' },
      ),
      efiVars: namedList('EFI variables with which the machine starts.', efiVariable(), { maxItems: MAX_ENTRIES }),
      tolerations: listOf('Tolerated taints of MachinePools.', toleration(), {
        maxItems: MAX_ENTRIES,
        'x-kubernetes-list-type': 'atomic',
      }),
      guestConfig: object('Data for the operating system.', {
        hostname: text('Host name. Can only be set at creation.', { pattern: DNS_LABEL, maxLength: 63 }),
      }),
    },
    { required: ['machineClassRef'], 'x-kubernetes-validations': [...SPEC_RULES] },
  );
}

function attachment(what: string, source: Record<string, Schema>): Schema {
  return object(
    `How far the ${what} is attached.`,
    {
      name: name('Name of the entry in the spec.'),
      handle: text('ID in the pool.'),
      state: text('Pending or Attached.'),
      lastStateTransitionTime: time('When the state last changed.'),
      ...source,
    },
    { required: ['name'] },
  );
}

/** In a status: it may be there and name nothing. */
function known(description: string): Schema {
  return object(description, { name: text('Its name.') }, { 'x-kubernetes-map-type': 'atomic' });
}

function status(): Schema {
  return object('Observed state of the machine.', {
    machineID: text('Name of the runtime and ID of the machine there: RUNTIME://ID.'),
    observedGeneration: observedGeneration('Generation of the Machine that the pool last processed.'),
    conditions: conditions(),
    state: text('Pending, Running, Shutdown, Terminating or Terminated.'),
    volumes: namedList(
      'Volumes of the machine, with their attachment.',
      attachment('volume', { volumeRef: known('The Volume.') }),
      {
        maxItems: 2 * MAX_ENTRIES,
      },
    ),
    networkInterfaces: namedList(
      'Network interfaces of the machine, with their attachment.',
      attachment('network interface', { networkInterfaceRef: known('The NetworkInterface.') }),
      { maxItems: 2 * MAX_ENTRIES },
    ),
  });
}

/** The kind Machine of IronCore. */
export const ironCoreMachine: Definition = {
  kind: 'Machine',
  plural: 'machines',
  foreign: COMPUTE,
  description: 'A machine of IronCore, with a class, in a pool.',
  columns: [
    {
      name: 'MachineClassRef',
      type: 'string',
      jsonPath: '.spec.machineClassRef.name',
      description: 'Class of the machine.',
    },
    {
      name: 'Image',
      type: 'string',
      jsonPath: '.spec.image',
      description: 'Image of the first disk, if spec.image is set.',
    },
    {
      name: 'MachinePoolRef',
      type: 'string',
      jsonPath: '.spec.machinePoolRef.name',
      description: 'Pool of the machine.',
    },
    { name: 'State', type: 'string', jsonPath: '.status.state', description: 'State of the object.' },
    AGE,
  ],
  hasStatus: true,
  hasScale: false,
  properties: { spec: spec(), status: status() },
  required: ['spec'],
  rules: [LABEL_NAME, DETACHED_FIRST],
};
