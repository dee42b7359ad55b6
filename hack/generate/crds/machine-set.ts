import { MACHINE_SET_CONDITION_TYPES } from '../../../pkg/apis/machine/v1alpha1/conditions.ts';
import { REVISION_ANNOTATION } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import { type Definition, escaped, wide } from './definition.ts';
import { classSpec, failedMachines, lastOperation, machineTemplate } from './machine.ts';
import { classNamed, notNegative, SELECTOR_RULES, SET_SELECTOR_KEPT, SPEC_PRESENT } from './rules.ts';
import { int32, int64, listOf, object, oneOf, type Schema, text, time } from './schema.ts';
import { selector } from './selector.ts';

function machineSetSpec(): Schema {
  return object(
    'Desired state of the MachineSet.',
    {
      autoPreserveFailedMachineMax: int32(
        'Maximum number of failed Machines that the MachineSet preserves automatically.',
        {
          'x-kubernetes-validations': [notNegative('autoPreserveFailedMachineMax')],
        },
      ),
      machineClass: classSpec('Has no effect; the class of the template is used.'),
      minReadySeconds: int32('Has no effect on availability.', {
        'x-kubernetes-validations': [notNegative('minReadySeconds')],
      }),
      // That it is not negative is checked by the scale subresource.
      replicas: int32('Desired number of Machines.', { default: 0 }),
      selector: selector('Selects the Machines of the MachineSet. Must match the labels of the template. Immutable.'),
      template: machineTemplate(),
    },
    { 'x-kubernetes-validations': [...SELECTOR_RULES, SET_SELECTOR_KEPT, classNamed('template.spec.class')] },
  );
}

function machineSetStatus(): Schema {
  return object('Observed state of the MachineSet.', {
    autoPreserveFailedMachineCount: int32('Machines that are preserved automatically.'),
    availableReplicas: int32('Machines in phase Running or Available.'),
    failedMachines: failedMachines(),
    fullyLabeledReplicas: int32('Machines that have all labels of the template.'),
    lastOperation: lastOperation('Shows when the status was last computed.'),
    machineSetCondition: listOf(
      'Conditions of the MachineSet.',
      object(
        'A condition of the MachineSet.',
        {
          lastTransitionTime: time('When the status last changed.'),
          message: text('Human-readable details.'),
          reason: text('Reason of the last change, in CamelCase.'),
          status: text('True, False or Unknown.'),
          type: text(oneOf(MACHINE_SET_CONDITION_TYPES)),
        },
        { required: ['status', 'type'] },
      ),
    ),
    observedGeneration: int64('Generation of the spec for which the status was computed.'),
    preservedFailedReplicas: int32('Failed Machines that are preserved.'),
    readyReplicas: int32('Machines in phase Running.'),
    replicas: int32('Machines of the MachineSet, in any phase.'),
  });
}

/** The kind MachineSet. */
export const machineSet: Definition = {
  kind: 'MachineSet',
  plural: 'machinesets',
  shortName: 'mcs',
  description: 'Maintains a number of equal Machines.',
  columns: [
    { name: 'Desired', type: 'integer', jsonPath: '.spec.replicas', description: 'Desired number of Machines.' },
    { name: 'Current', type: 'integer', jsonPath: '.status.replicas', description: 'Number of Machines.' },
    {
      name: 'Ready',
      type: 'integer',
      jsonPath: '.status.readyReplicas',
      description: 'Number of Machines that are Running.',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Age of the object.' },
    wide('Class', 'string', '.spec.template.spec.class.name', 'MachineClass of new Machines.'),
    wide(
      'Revision',
      'string',
      `.metadata.annotations.${escaped(REVISION_ANNOTATION)}`,
      'Revision of the MachineDeployment.',
    ),
  ],
  hasStatus: true,
  hasScale: true,
  properties: { spec: machineSetSpec(), status: machineSetStatus() },
  rules: [SPEC_PRESENT],
};
