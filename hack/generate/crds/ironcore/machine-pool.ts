import type { Definition } from '../definition.ts';
import { int32, listOf, object, type Schema, text } from '../schema.ts';
import { AGE, COMPUTE, conditions, namedList, observedGeneration, reference, resources } from './parts.ts';

const taint: Schema = object(
  'Keeps Machines that do not tolerate it away.',
  {
    key: text('Key of the taint.', { minLength: 1 }),
    value: text('Value of the taint.'),
    effect: text('NoSchedule: no machine is placed in the pool. NoExecute: machines in the pool are evicted too.', {
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
  description: 'A pool of capacity for machines.',
  columns: [
    {
      name: 'Ready',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether machines can be placed in the pool.',
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
      description: 'Whether its runtime has machines without a Machine, which are kept.',
    },
    AGE,
  ],
  hasStatus: true,
  hasScale: false,
  properties: {
    spec: object('Properties of the pool.', {
      providerID: text('ID of the runtime. Can be set only once.', {
        maxLength: 4096,
        'x-kubernetes-validations': [
          {
            rule: "oldSelf == '' || self == oldSelf",
            message: 'cannot be changed after it is set',
            reason: 'FieldValueInvalid',
          },
        ],
      }),
      taints: listOf('Taints of the pool.', taint, { maxItems: 128, 'x-kubernetes-list-type': 'atomic' }),
    }),
    status: object('Observed state of the pool.', {
      state: text('Ready, Pending, Error or Offline.'),
      conditions: conditions({ observedGeneration: observedGeneration('Generation for which the condition was set.') }),
      availableMachineClasses: namedList('Classes for which the pool has capacity.', reference('A MachineClass.')),
      addresses: listOf('Addresses of the pool.', address, { 'x-kubernetes-list-type': 'atomic' }),
      daemonEndpoints: object('Ports on which the pool listens.', {
        machinepoolletEndpoint: object('Port of its agent.', { port: int32('The port.') }, { required: ['port'] }),
      }),
      capacity: resources('Total number of machines that fit into the pool, by class (class/machine.NAME).'),
      allocatable: resources('Remaining number of machines that fit into the pool, by class.'),
    }),
  },
  rules: [],
};
