import { KAAS_GROUP, KAAS_VERSION } from '../../../pkg/apis/mirantis/pool.ts';
import type { Definition } from './definition.ts';
import { int32, object, type Schema } from './schema.ts';

const OPEN: Schema = { 'x-kubernetes-preserve-unknown-fields': true };

/** The kind MachinePool of Mirantis Container Cloud. The controller tells what is wrong with what has no type here. */
export const machinePool: Definition = {
  kind: 'MachinePool',
  plural: 'machinepools',
  foreign: { group: KAAS_GROUP, version: KAAS_VERSION, folder: 'mirantis' },
  description: 'A number of equal machines as Mirantis Container Cloud has it.',
  columns: [
    { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas', description: 'Machines that are asked for.' },
    { name: 'Ready', type: 'integer', jsonPath: '.status.readyReplicas', description: 'Machines that are ready.' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Time since its creation.' },
  ],
  hasStatus: true,
  hasScale: true,
  properties: {
    spec: object(
      'What the pool should be.',
      {
        replicas: int32('Number of machines.'),
        machineSpec: { ...object('What each of them should be, as spec of a Machine.', {}), ...OPEN },
      },
      OPEN,
    ),
    status: object('What is known of the pool.', { replicas: int32('Machines that there are.') }, OPEN),
  },
  rules: [],
};
