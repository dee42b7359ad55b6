import type { Definition } from '../definition.ts';
import { int32, listOf, object, type Schema, text } from '../schema.ts';
import { AGE, COMPUTE, conditions, namedList, observedGeneration, reference, resources } from './parts.ts';

const taint: Schema = object(
  'Keeps Machines that do not tolerate it away.',
  {
    key: text('Key of the taint.', { minLength: 1 }),
    value: text('Value of the taint.'),
    effect: text('NoSchedule: none is placed here. NoExecute: nor does one stay.', {
      enum: ['NoSchedule', 'NoExecute'],
    }),
  },
  { required: ['key', 'effect'] },
);

const address: Schema = object(
  'An address.',
  { type: text('Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.'), address: text('The address.') },
  { required: ['type', 'address'] },
);

/** The kind MachinePool of IronCore. */
export const ironCoreMachinePool: Definition = {
  kind: 'MachinePool',
  plural: 'machinepools',
  foreign: { ...COMPUTE, isClusterScoped: true },
  description: 'Where machines run: so many of each class.',
  columns: [
    {
      name: 'Ready',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether machines can be placed in it.',
    },
    {
      name: 'State',
      type: 'string',
      jsonPath: '.status.state',
      description: 'Ready, Pending, Error or Offline.',
    },
    // Of a list an API server prints the first alone, or all as JSON: classes are for custom-columns.
    {
      name: 'Kept',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="MachinesKept")].status',
      description: 'Whether its runtime has machines that have no Machine, and are kept.',
    },
    AGE,
  ],
  hasStatus: true,
  hasScale: false,
  properties: {
    spec: object('What the pool is.', {
      providerID: text('What its runtime is called. Set once.', {
        maxLength: 4096,
        'x-kubernetes-validations': [
          {
            rule: "oldSelf == '' || self == oldSelf",
            message: 'cannot be changed once it is set',
            reason: 'FieldValueInvalid',
          },
        ],
      }),
      taints: listOf('Taints of the pool.', taint, { maxItems: 128, 'x-kubernetes-list-type': 'atomic' }),
    }),
    status: object('What is known of the pool.', {
      state: text('Ready, Pending, Error or Offline.'),
      conditions: conditions({ observedGeneration: observedGeneration('The generation that it was said about.') }),
      availableMachineClasses: namedList('Classes of machines that it has places for.', reference('A MachineClass.')),
      addresses: listOf('Addresses of the pool.', address, { 'x-kubernetes-list-type': 'atomic' }),
      daemonEndpoints: object('Ports that the pool listens on.', {
        machinepoolletEndpoint: object('Port of its agent.', { port: int32('The port.') }, { required: ['port'] }),
      }),
      capacity: resources('How many machines fit in all, by class/machine.NAME of the class.'),
      allocatable: resources('The same without the machines that are there.'),
    }),
  },
  rules: [],
};
