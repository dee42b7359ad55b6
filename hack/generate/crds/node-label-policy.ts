import type { Definition } from './definition.ts';
import { listOf, mapOf, object, text } from './schema.ts';

/** The kind NodeLabelPolicy. */
export const nodeLabelPolicy: Definition = {
  kind: 'NodeLabelPolicy',
  plural: 'nodelabelpolicies',
  shortName: 'nlp',
  description:
    'Which labels the node templates of its namespace may ask for. Without one there is no limit; with several, each must allow a label.',
  columns: [
    {
      name: 'Machines',
      type: 'string',
      jsonPath: '.spec.machineLabels',
      description: 'Labels of the Machines that it concerns; empty: all of the namespace.',
    },
    { name: 'Allowed', type: 'string', jsonPath: '.spec.allowed', description: 'Labels that may be asked for.' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Since when it exists.' },
  ],
  hasStatus: false,
  hasScale: false,
  properties: {
    spec: object('What is allowed.', {
      machineLabels: mapOf(
        'Machines that it concerns: those with all of these labels. Absent: all of the namespace.',
        text('Value of the label.', { maxLength: 63 }),
        { maxProperties: 20 },
      ),
      allowed: listOf(
        'Labels that may be asked for, by key, and by value where one is given. An empty list allows none.',
        object(
          'A label.',
          {
            key: text('Key of the label.', { maxLength: 317 }),
            value: text('Its value; absent: any. Name the key once more for each further value.', { maxLength: 63 }),
          },
          { required: ['key'] },
        ),
        { maxItems: 1000, 'x-kubernetes-list-type': 'atomic' },
      ),
    }),
  },
  required: ['spec'],
  rules: [],
};
