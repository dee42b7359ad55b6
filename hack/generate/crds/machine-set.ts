import { MACHINE_SET_CONDITION_TYPES } from '../../../pkg/apis/machine/v1alpha1/conditions.ts';
import type { Definition } from './definition.ts';
import { classSpec, failedMachines, lastOperation, machineTemplate } from './machine.ts';
import { classNamed, notNegative, SELECTOR_RULES, SET_SELECTOR_KEPT, SPEC_PRESENT } from './rules.ts';
import { int32, int64, listOf, object, oneOf, type Schema, text, time } from './schema.ts';
import { selector } from './selector.ts';

function machineSetSpec(): Schema {
  return object(
    'What the set should be.',
    {
      autoPreserveFailedMachineMax: int32('How many failed Machines of the set may be preserved without being asked.', {
        'x-kubernetes-validations': [notNegative('autoPreserveFailedMachineMax')],
      }),
      machineClass: classSpec('Without effect; the class is that of the template.'),
      minReadySeconds: int32('Without effect on availability.', {
        'x-kubernetes-validations': [notNegative('minReadySeconds')],
      }),
      // That it is not negative is checked by the scale subresource.
      replicas: int32('How many Machines there should be.', { default: 0 }),
      selector: selector(
        'Which Machines belong to the set; it must select those of the template, and cannot be changed.',
      ),
      template: machineTemplate(),
    },
    { 'x-kubernetes-validations': [...SELECTOR_RULES, SET_SELECTOR_KEPT, classNamed('template.spec.class')] },
  );
}

function machineSetStatus(): Schema {
  return object('What is known of the set.', {
    autoPreserveFailedMachineCount: int32('Machines that are preserved without having been asked for.'),
    availableReplicas: int32('Machines in phase Running or Available.'),
    failedMachines: failedMachines(),
    fullyLabeledReplicas: int32('Machines that have all labels of the template.'),
    lastOperation: lastOperation('When the status was last computed.'),
    machineSetCondition: listOf(
      'Conditions of the set.',
      object(
        'A condition of the set.',
        {
          lastTransitionTime: time('When the status last changed.'),
          message: text('Details, for humans.'),
          reason: text('Cause of the last change, in one word.'),
          status: text('True, False or Unknown.'),
          type: text(oneOf(MACHINE_SET_CONDITION_TYPES)),
        },
        { required: ['status', 'type'] },
      ),
    ),
    observedGeneration: int64('Generation of the spec that the status belongs to.'),
    preservedFailedReplicas: int32('Failed Machines that are preserved.'),
    readyReplicas: int32('Machines in phase Running.'),
    replicas: int32('Machines that belong to the set, whatever their phase.'),
  });
}

/** The kind MachineSet. */
export const machineSet: Definition = {
  kind: 'MachineSet',
  plural: 'machinesets',
  shortName: 'mcs',
  description: 'Keeps a number of equal Machines alive.',
  columns: [
    { name: 'Desired', type: 'integer', jsonPath: '.spec.replicas', description: 'How many Machines there should be.' },
    { name: 'Current', type: 'integer', jsonPath: '.status.replicas', description: 'How many Machines there are.' },
    { name: 'Ready', type: 'integer', jsonPath: '.status.readyReplicas', description: 'How many Machines run.' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Age of the object.' },
  ],
  hasStatus: true,
  hasScale: true,
  properties: { spec: machineSetSpec(), status: machineSetStatus() },
  rules: [SPEC_PRESENT],
};
