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
  return { description: 'Size of the disk. Absent: what the pool gives.', ...quantity() };
}

function volume(): Schema {
  return object(
    'A volume, with exactly one source.',
    {
      name: name('Name of the entry.'),
      device: text('Where it is seen in the machine, such as oda. Absent: the first that is free.', {
        pattern: '^[a-z]{2}[a-z]{1,2}$',
        maxLength: 4,
      }),
      volumeRef: reference('A Volume of the namespace.'),
      emptyDisk: object('An empty disk of the pool. Deprecated: use localDisk.', { sizeLimit: sizeLimit() }),
      localDisk: object('A disk of the pool, deleted with the machine.', {
        sizeLimit: sizeLimit(),
        image: text('Image that is on it at first. Cannot be changed.', { maxLength: 4096 }),
      }),
      ephemeral: object(
        'A Volume that is created for the Machine and deleted with it.',
        { volumeTemplate: template('What that Volume should be: metadata and spec.') },
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
      networkInterfaceRef: reference('A NetworkInterface of the namespace.'),
      ephemeral: object(
        'A NetworkInterface that is created for the Machine and deleted with it.',
        { networkInterfaceTemplate: template('What that NetworkInterface should be: metadata and spec.') },
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
      key: text('Key of the taint. Absent: any; the operator must be Exists then.', { maxLength: 317 }),
      operator: text('Equal, which is meant where it is absent: the value must be the same. Exists: any value.', {
        enum: ['Equal', 'Exists'],
      }),
      value: text('Value of the taint.'),
      effect: text('Effect of the taint: NoSchedule or NoExecute. Absent: both.', {
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
    'What the machine should be.',
    {
      machineClassRef: reference('The MachineClass, which says how large it is. Cannot be changed.', {
        'x-kubernetes-validations': [CLASS_KEPT],
      }),
      machinePoolSelector: mapOf('Labels that the MachinePool must have when the scheduler chooses one.', {
        type: 'string',
      }),
      machinePoolRef: reference('The MachinePool that it runs in. Absent: the scheduler chooses one. Set once.'),
      image: text('Image of the first disk, as older documents have it. Cannot be changed.', { maxLength: 4096 }),
      power: text('On or Off.', { enum: ['On', 'Off'], default: 'On' }),
      volumes: namedList('Volumes of the machine. The first one is the root disk.', volume(), {
        maxItems: MAX_ENTRIES,
      }),
      networkInterfaces: namedList('Network interfaces of the machine.', networkInterface(), { maxItems: MAX_ENTRIES }),
      ignitionRef: object(
        'Secret of the namespace with what the machine is configured by when it starts for the first time.',
        {
          name: name('Name of the Secret.'),
          key: text('Key in the Secret. Absent or empty: ignition.yaml.', { maxLength: 253 }),
        },
        { required: ['name'], 'x-kubernetes-map-type': 'atomic' },
      ),
      efiVars: namedList('Variables of EFI that the machine starts with.', efiVariable(), { maxItems: MAX_ENTRIES }),
      tolerations: listOf('Taints of MachinePools that are tolerated.', toleration(), {
        maxItems: MAX_ENTRIES,
        'x-kubernetes-list-type': 'atomic',
      }),
      guestConfig: object('Data for the operating system.', {
        hostname: text('Host name. Given when the Machine is created only.', { pattern: DNS_LABEL, maxLength: 63 }),
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
      handle: text('What the pool calls it.'),
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
  return object('What is known of the machine.', {
    machineID: text('Name of the runtime and ID of the machine there: RUNTIME://ID.'),
    observedGeneration: observedGeneration('The generation of the Machine that the pool has acted on.'),
    conditions: conditions(),
    state: text('Pending, Running, Shutdown, Terminating or Terminated.'),
    volumes: namedList(
      'Volumes, as far as they are attached.',
      attachment('volume', { volumeRef: known('The Volume.') }),
      {
        maxItems: 2 * MAX_ENTRIES,
      },
    ),
    networkInterfaces: namedList(
      'Network interfaces, as far as they are attached.',
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
  description: 'A machine as IronCore has it: of a class, in a pool.',
  columns: [
    { name: 'MachineClassRef', type: 'string', jsonPath: '.spec.machineClassRef.name', description: 'Its class.' },
    {
      name: 'Image',
      type: 'string',
      jsonPath: '.spec.image',
      description: 'Image of the first disk, if the spec names it so.',
    },
    { name: 'MachinePoolRef', type: 'string', jsonPath: '.spec.machinePoolRef.name', description: 'Its pool.' },
    { name: 'State', type: 'string', jsonPath: '.status.state', description: 'State in one word.' },
    AGE,
  ],
  hasStatus: true,
  hasScale: false,
  properties: { spec: spec(), status: status() },
  required: ['spec'],
  rules: [LABEL_NAME, DETACHED_FIRST],
};
