import type { Definition } from './definition.ts';
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
    'What the Nodes of this class are like: lets an autoscaler scale from zero.',
    {
      architecture: text('CPU architecture, such as amd64 or arm64.'),
      capacity: mapOf('Resources that a Node has; cpu, gpu and memory must be among them.', quantity(), {
        'x-kubernetes-validations': ['cpu', 'gpu', 'memory'].map(capacityNamed),
      }),
      instanceType: place('instanceType', "The provider's name for the size of the VM."),
      region: place('region', 'Region of the VM.'),
      virtualCapacity: mapOf('Resources that are written into status.capacity of the Nodes.', quantity()),
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
  description: 'How VMs of one kind are made. The members are top level: there is no spec.',
  columns: [],
  hasStatus: false,
  hasScale: false,
  properties: {
    credentialsSecretRef: secretReference(
      'Secret with credentials of the provider; its data go over those of secretRef, key by key.',
    ),
    nodeTemplate: nodeTemplate(),
    provider: text('Name of the driver that makes the VMs.'),
    providerSpec: {
      description: 'How the driver makes a VM; its form is the business of the driver.',
      type: 'object',
      'x-kubernetes-preserve-unknown-fields': true,
    },
    secretRef: secretReference('Secret with userData, and usually credentials of the provider.'),
  },
  required: ['providerSpec'],
  rules: [],
};
