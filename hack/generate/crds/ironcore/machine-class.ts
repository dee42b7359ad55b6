import type { Definition } from '../definition.ts';
import type { Rule } from '../schema.ts';
import { AGE, COMPUTE, resources } from './parts.ts';
import { LABEL_NAME } from './rules.ts';

function positive(resource: 'cpu' | 'memory'): Rule {
  return {
    rule:
      `'${resource}' in self && (type(self['${resource}']) == int ? int(self['${resource}']) > 0 ` +
      `: quantity(string(self['${resource}'])).isGreaterThan(quantity('0')))`,
    message: `${resource} must be set, and greater than 0`,
    reason: 'FieldValueInvalid',
  };
}

/** The kind MachineClass of IronCore. */
export const ironCoreMachineClass: Definition = {
  kind: 'MachineClass',
  plural: 'machineclasses',
  foreign: { ...COMPUTE, isClusterScoped: true },
  description: 'A machine size. The fields are at the top level; there is no spec.',
  columns: [AGE],
  hasStatus: false,
  hasScale: false,
  properties: {
    capabilities: resources('Resources of a machine of this class; must contain cpu and memory. Immutable.', {
      maxProperties: 64,
      'x-kubernetes-validations': [
        positive('cpu'),
        positive('memory'),
        {
          rule: 'self == oldSelf',
          message: 'cannot be changed, because machines use it; create another class',
          reason: 'FieldValueInvalid',
        },
      ],
    }),
  },
  required: ['capabilities'],
  rules: [LABEL_NAME],
};
