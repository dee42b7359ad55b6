import { CLUSTER_GROUP, CLUSTER_VERSION } from '../../../pkg/worlds/mirantis/api/machine.ts';
import type { Definition } from './definition.ts';
import { object, type Schema } from './schema.ts';

const OPEN: Schema = { 'x-kubernetes-preserve-unknown-fields': true };

/** The kind Cluster of Mirantis Container Cloud. */
export const cloudCluster: Definition = {
  kind: 'Cluster',
  plural: 'clusters',
  foreign: { group: CLUSTER_GROUP, version: CLUSTER_VERSION, folder: 'mirantis', approval: 'unapproved, legacy API' },
  description: 'A Cluster of Mirantis Container Cloud.',
  columns: [
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Time since its creation.' },
  ],
  hasStatus: true,
  hasScale: false,
  properties: {
    spec: { ...object('Desired state of the Cluster.', {}), ...OPEN },
    status: { ...object('Observed state of the Cluster.', {}), ...OPEN },
  },
  rules: [],
};
