import { CLUSTER_GROUP, CLUSTER_VERSION } from '../../../pkg/worlds/mirantis/api/machine.ts';
import type { Definition } from './definition.ts';
import { flag, object, text, type Schema } from './schema.ts';

const OPEN: Schema = { 'x-kubernetes-preserve-unknown-fields': true };
/** Without optional members, for which the API server reckons with texts of any length. */
const is = (one: 'self' | 'oldSelf', policy: string): string =>
  `(has(${one}.deletionPolicy) && ${one}.deletionPolicy == '${policy}')`;

/** The kind Machine of Mirantis Container Cloud. Only what a rule needs has a type: the controller tells what is wrong with the rest. */
export const clusterMachine: Definition = {
  kind: 'Machine',
  plural: 'machines',
  foreign: { group: CLUSTER_GROUP, version: CLUSTER_VERSION, folder: 'mirantis', approval: 'unapproved, legacy API' },
  description: 'A machine of Mirantis Container Cloud.',
  columns: [
    {
      name: 'State',
      type: 'string',
      jsonPath: '.status.providerStatus.status',
      description: 'State of the machine.',
    },
    { name: 'IP', type: 'string', jsonPath: '.status.providerStatus.privateIp', description: 'Its private address.' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Time since its creation.' },
  ],
  hasStatus: true,
  hasScale: false,
  properties: {
    spec: object(
      'Desired state of the machine.',
      {
        providerSpec: object(
          'Settings for the provider.',
          {
            value: object(
              'An OpenstackMachineProviderSpec.',
              {
                delete: flag('Requests the deletion of the machine; false aborts it.'),
                deletionPolicy: text('Deletion policy: graceful, unsafe or forced.', { maxLength: 63 }),
              },
              {
                ...OPEN,
                'x-kubernetes-validations': [
                  {
                    rule:
                      '!(has(oldSelf.delete) && oldSelf.delete) || !(has(self.delete) && self.delete) || ' +
                      `${is('self', 'forced')} || ${is('oldSelf', 'graceful')} || !(${is('oldSelf', 'forced')} || ${is('self', 'graceful')})`,
                    message:
                      'deletionPolicy of a machine that is being deleted can only be weakened: graceful, unsafe, forced',
                    reason: 'FieldValueInvalid',
                  },
                ],
              },
            ),
          },
          OPEN,
        ),
      },
      OPEN,
    ),
    status: object(
      'Observed state of the machine.',
      { providerStatus: { ...object('An OpenstackMachineProviderStatus.', {}), ...OPEN } },
      OPEN,
    ),
  },
  rules: [],
};
