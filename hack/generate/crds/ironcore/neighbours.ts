import type { Definition } from '../definition.ts';
import { listOf, mapOf, object, type Schema, text } from '../schema.ts';
import { AGE, NETWORKING, OPEN, reference, resources, STORAGE, uidReference } from './parts.ts';

function open(description: string, properties: Record<string, Schema>): Schema {
  return { ...object(description, properties), ...OPEN };
}

/** The kind Volume of IronCore: what Machines read of it. */
export const ironCoreVolume: Definition = {
  kind: 'Volume',
  plural: 'volumes',
  foreign: STORAGE,
  description: 'A volume as IronCore has it. Members that are not named here are kept.',
  columns: [{ name: 'State', type: 'string', jsonPath: '.status.state', description: 'State in one word.' }, AGE],
  hasStatus: true,
  hasScale: false,
  properties: {
    spec: open('What the volume should be.', {
      claimRef: uidReference('The Machine that uses it.'),
      encryption: open('How it is encrypted.', { secretRef: reference('Secret with the key.') }),
      resources: resources('What is asked for: storage.'),
    }),
    status: open('What is known of the volume.', {
      state: text('Pending, Available or Error.'),
      access: open('How a machine gets at it.', {
        driver: text('The driver that it is attached by.'),
        handle: text('What that driver calls it.'),
        volumeAttributes: mapOf('What that driver needs besides.', { type: 'string' }),
        secretRef: reference('Secret with what is needed for access.'),
      }),
      resources: resources('What is there: storage.'),
    }),
  },
  rules: [],
};

/** The kind NetworkInterface of IronCore: what Machines read of it. */
export const ironCoreNetworkInterface: Definition = {
  kind: 'NetworkInterface',
  plural: 'networkinterfaces',
  foreign: NETWORKING,
  description: 'A network interface as IronCore has it. Members that are not named here are kept.',
  columns: [
    { name: 'Network', type: 'string', jsonPath: '.spec.networkRef.name', description: 'Its network.' },
    { name: 'State', type: 'string', jsonPath: '.status.state', description: 'State in one word.' },
    AGE,
  ],
  hasStatus: true,
  hasScale: false,
  properties: {
    spec: open('What the network interface should be.', {
      networkRef: reference('The Network that it is in.'),
      machineRef: uidReference('The Machine that uses it.'),
      ips: listOf('Where its IP addresses come from.', open('One address.', { value: text('The address itself.') }), {
        'x-kubernetes-list-type': 'atomic',
      }),
      providerID: text('What the pool calls it.'),
      attributes: mapOf('What the pool needs besides.', { type: 'string' }),
    }),
    status: open('What is known of the network interface.', {
      state: text('Pending, Available or Error.'),
      ips: listOf('Its IP addresses.', { type: 'string' }, { 'x-kubernetes-list-type': 'atomic' }),
    }),
  },
  rules: [],
};

/** The kind Network of IronCore: what Machines read of it. */
export const ironCoreNetwork: Definition = {
  kind: 'Network',
  plural: 'networks',
  foreign: NETWORKING,
  description: 'A network as IronCore has it. Members that are not named here are kept.',
  columns: [{ name: 'State', type: 'string', jsonPath: '.status.state', description: 'State in one word.' }, AGE],
  hasStatus: true,
  hasScale: false,
  properties: {
    spec: open('What the network should be.', { providerID: text('What its provider calls it.') }),
    status: open('What is known of the network.', { state: text('Pending, Available or Error.') }),
  },
  rules: [],
};
