import type { Definition } from './definition.ts';
import { listOf, mapOf, object, text } from './schema.ts';

/** The kind NodeLabelPolicy. */
export const nodeLabelPolicy: Definition = {
  kind: 'NodeLabelPolicy',
  plural: 'nodelabelpolicies',
  shortName: 'nlp',
  description:
    'Restricts the labels in node templates of its namespace. Without a policy, all labels are allowed; with several policies, each must allow a label.',
  columns: [
    {
      name: 'Machines',
      type: 'string',
      jsonPath: '.spec.machineLabels',
      description:
        'Labels of the Machines to which the policy applies; if empty, it applies to all Machines of the namespace.',
    },
    { name: 'Allowed', type: 'string', jsonPath: '.spec.allowed', description: 'Allowed labels.' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Time since its creation.' },
  ],
  hasStatus: false,
  hasScale: false,
  properties: {
    spec: object('Rules of the policy.', {
      machineLabels: mapOf(
        'The policy applies to Machines with all of these labels. If unset, it applies to all Machines of the namespace.',
        text('Value of the label.', { maxLength: 63 }),
        { maxProperties: 20 },
      ),
      allowed: listOf(
        'Allowed labels, by key and optionally by value. An empty list allows no labels.',
        object(
          'A label.',
          {
            key: text('Key of the label.', { maxLength: 317 }),
            value: text('Value of the label; if unset, any value is allowed. Add an entry for each allowed value.', {
              maxLength: 63,
            }),
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
