import { type Definition, wide } from './definition.ts';
import { capacityNamed, notEmpty } from './rules.ts';
import { mapOf, object, quantity, type Schema, text } from './schema.ts';

function secretReference(description: string): Schema {
  return object(
    description,
    { name: text('Name of the Secret.'), namespace: text('Namespace of the Secret.') },
    { 'x-kubernetes-map-type': 'atomic' },
  );
}

function place(field: string, description: string): Schema {
  return text(description, { 'x-kubernetes-validations': [notEmpty(field)] });
}

function nodeTemplate(): Schema {
  return object(
    'Properties of the Nodes of this class, with which an autoscaler can scale from zero.',
    {
      architecture: text('CPU architecture, such as amd64 or arm64.'),
      capacity: mapOf('Resources of a Node; must contain cpu, gpu and memory.', quantity(), {
        'x-kubernetes-validations': ['cpu', 'gpu', 'memory'].map(capacityNamed),
      }),
      instanceType: place('instanceType', 'Name of the VM size at the provider.'),
      region: place('region', 'Region of the VM.'),
      virtualCapacity: mapOf('Resources that are written to status.capacity of the Nodes.', quantity()),
      zone: place('zone', 'Zone of the VM.'),
    },
    { required: ['capacity', 'instanceType', 'region', 'zone'], 'x-kubernetes-preserve-unknown-fields': true },
  );
}

/** The kind MachineClass. */
export const machineClass: Definition = {
  kind: 'MachineClass',
  plural: 'machineclasses',
  shortName: 'mcc',
  description: 'Properties of VMs. The fields are at the top level; there is no spec.',
  columns: [
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Age of the object.' },
    wide('Provider', 'string', '.provider', 'Name of the driver that creates the VMs.'),
    wide('Type', 'string', '.nodeTemplate.instanceType', 'Name of the VM size at the provider.'),
    wide('Zone', 'string', '.nodeTemplate.zone', 'Zone of the VM.'),
  ],
  hasStatus: false,
  hasScale: false,
  properties: {
    credentialsSecretRef: secretReference(
      'Secret with credentials of the provider; its keys override those of secretRef.',
    ),
    nodeTemplate: nodeTemplate(),
    provider: text('Name of the driver that creates the VMs.'),
    providerSpec: {
      description: 'Properties of VMs in a driver-specific format.',
      type: 'object',
      'x-kubernetes-preserve-unknown-fields': true,
    },
    secretRef: secretReference('Secret with userData, and usually credentials of the provider.'),
  },
  required: ['providerSpec'],
  rules: [],
};
