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
  description: 'A volume of IronCore. Other fields are preserved.',
  columns: [{ name: 'State', type: 'string', jsonPath: '.status.state', description: 'State of the object.' }, AGE],
  hasStatus: true,
  hasScale: false,
  properties: {
    spec: open('Desired state of the volume.', {
      claimRef: uidReference('Machine that uses the object.'),
      encryption: open('Encryption of the volume.', { secretRef: reference('Secret with the key.') }),
      resources: resources('Requested resources: storage.'),
    }),
    status: open('Observed state of the volume.', {
      state: text('Pending, Available or Error.'),
      access: open('How a machine accesses the volume.', {
        driver: text('Driver that attaches the volume.'),
        handle: text('ID of the volume in the driver.'),
        volumeAttributes: mapOf('Additional parameters for the driver.', { type: 'string' }),
        secretRef: reference('Secret for the access.'),
      }),
      resources: resources('Actual resources: storage.'),
    }),
  },
  rules: [],
};

/** The kind NetworkInterface of IronCore: what Machines read of it. */
export const ironCoreNetworkInterface: Definition = {
  kind: 'NetworkInterface',
  plural: 'networkinterfaces',
  foreign: NETWORKING,
  description: 'A network interface of IronCore. Other fields are preserved.',
  columns: [
    { name: 'Network', type: 'string', jsonPath: '.spec.networkRef.name', description: 'Its network.' },
    { name: 'State', type: 'string', jsonPath: '.status.state', description: 'State of the object.' },
    AGE,
  ],
  hasStatus: true,
  hasScale: false,
  properties: {
    spec: open('Desired state of the network interface.', {
      networkRef: reference('Network of the network interface.'),
      machineRef: uidReference('Machine that uses the object.'),
      ips: listOf('Sources of its IP addresses.', open('One address.', { value: text('IP address.') }), {
        'x-kubernetes-list-type': 'atomic',
      }),
      providerID: text('ID in the pool.'),
      attributes: mapOf('Additional parameters for the pool.', { type: 'string' }),
    }),
    status: open('Observed state of the network interface.', {
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
  description: 'A network of IronCore. Other fields are preserved.',
  columns: [{ name: 'State', type: 'string', jsonPath: '.status.state', description: 'State of the object.' }, AGE],
  hasStatus: true,
  hasScale: false,
  properties: {
    spec: open('Desired state of the network.', { providerID: text('ID of the network at its provider.') }),
    status: open('Observed state of the network.', { state: text('Pending, Available or Error.') }),
  },
  rules: [],
};
