import { KAAS_GROUP, KAAS_VERSION } from '../../../pkg/worlds/mirantis/api/pool.ts';
import type { Definition } from './definition.ts';
import { int32, object, type Schema } from './schema.ts';

const OPEN: Schema = { 'x-kubernetes-preserve-unknown-fields': true };

/** The kind MachinePool of Mirantis Container Cloud. The controller tells what is wrong with what has no type here. */
export const machinePool: Definition = {
  kind: 'MachinePool',
  plural: 'machinepools',
  foreign: { group: KAAS_GROUP, version: KAAS_VERSION, folder: 'mirantis' },
  description: 'A number of equal machines of Mirantis Container Cloud.',
  columns: [
    { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas', description: 'Desired number of machines.' },
    { name: 'Ready', type: 'integer', jsonPath: '.status.readyReplicas', description: 'Number of ready machines.' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Time since its creation.' },
  ],
  hasStatus: true,
  hasScale: true,
  properties: {
    spec: object(
      'Desired state of the pool.',
      {
        replicas: int32('Number of machines.'),
        machineSpec: { ...object('Spec of each Machine of the pool.', {}), ...OPEN },
      },
      OPEN,
    ),
    status: object('Observed state of the pool.', { replicas: int32('Number of machines.') }, OPEN),
  },
  rules: [],
};
