import { MACHINE_DEPLOYMENT_CONDITION_TYPES } from '../../../pkg/apis/machine/v1alpha1/conditions.ts';
import { type Definition, wide } from './definition.ts';
import { failedMachines, machineTemplate } from './machine.ts';
import {
  classNamed,
  HASH_LEFT_TO_SETS,
  intOrPercent,
  notMoreThanAll,
  notNegative,
  SELECTOR_KEPT,
  SELECTOR_RULES,
  SPEC_PRESENT,
  STRATEGY_RULES,
} from './rules.ts';
import { flag, int32, int64, listOf, object, oneOf, type Rule, type Schema, text, time } from './schema.ts';
import { selector } from './selector.ts';

function limit(field: string, description: string, more: readonly Rule[] = []): Schema {
  return {
    anyOf: [{ type: 'integer' }, { type: 'string' }],
    description,
    'x-kubernetes-int-or-string': true,
    'x-kubernetes-validations': [intOrPercent(field), ...more],
  };
}

function limits(): Record<string, Schema> {
  return {
    maxSurge: limit(
      'maxSurge',
      'Maximum number of Machines in addition to the replicas: a number, or a percentage of replicas, rounded up.',
    ),
    maxUnavailable: limit(
      'maxUnavailable',
      'Maximum number of unavailable Machines: a number, or a percentage of replicas up to 100%, rounded down.',
      [notMoreThanAll('maxUnavailable')],
    ),
  };
}

function strategy(): Schema {
  return object('How machines are updated to a new template.', {
    inPlaceUpdate: object('Settings for type InPlaceUpdate, which updates machines without replacing them.', {
      ...limits(),
      orchestrationType: text(
        'Auto: the controller selects machines. Manual: a user or another controller selects them with labels.',
      ),
    }),
    rollingUpdate: object('Settings for type RollingUpdate.', limits()),
    type: text('RollingUpdate, Recreate or InPlaceUpdate.'),
  });
}

function count(field: string, description: string): Schema {
  return int32(description, { 'x-kubernetes-validations': [notNegative(field)] });
}

function machineDeploymentSpec(): Schema {
  return object(
    'Desired state of the MachineDeployment.',
    {
      autoPreserveFailedMachineMax: count(
        'autoPreserveFailedMachineMax',
        'Maximum number of failed Machines that each MachineSet preserves automatically.',
      ),
      minReadySeconds: count('minReadySeconds', 'Has no effect on availability.'),
      paused: flag('Pauses rollouts; scaling continues.'),
      progressDeadlineSeconds: count(
        'progressDeadlineSeconds',
        'Seconds without progress after which the rollout is reported as stuck. If unset, it is never reported.',
      ),
      // That it is not negative is checked by the scale subresource.
      replicas: int32('Desired number of Machines.', { default: 0 }),
      revisionHistoryLimit: count(
        'revisionHistoryLimit',
        'Number of old MachineSets to keep for rollbacks. If unset, all are kept.',
      ),
      rollbackTo: object('Deprecated. Requests a rollback; removed after the rollback.', {
        revision: int64('Revision to roll back to; 0 is the previous one.'),
      }),
      selector: selector(
        'Selects the MachineSets and Machines of the MachineDeployment. Must match the labels of the template. Immutable.',
      ),
      strategy: strategy(),
      template: machineTemplate(),
    },
    {
      required: ['template'],
      'x-kubernetes-validations': [
        ...SELECTOR_RULES,
        HASH_LEFT_TO_SETS,
        SELECTOR_KEPT,
        classNamed('template.spec.class'),
        ...STRATEGY_RULES,
      ],
    },
  );
}

function machineDeploymentStatus(): Schema {
  return object('Observed state of the MachineDeployment.', {
    availableReplicas: int32('Machines in phase Running or Available.'),
    collisionCount: int32('Number of collisions of the name of a new MachineSet.'),
    conditions: listOf(
      'Conditions of the MachineDeployment.',
      object(
        'A condition of the MachineDeployment.',
        {
          lastTransitionTime: time('When the status last changed.'),
          lastUpdateTime: time('When the condition was last written.'),
          message: text('Human-readable details.'),
          reason: text('Reason of the last change, in CamelCase.'),
          status: text('True, False or Unknown.'),
          type: text(oneOf(MACHINE_DEPLOYMENT_CONDITION_TYPES)),
        },
        { required: ['status', 'type'] },
      ),
    ),
    failedMachines: failedMachines(),
    observedGeneration: int64('Generation of the spec for which the status was computed.'),
    preservedFailedReplicas: int32('Failed Machines that are preserved.'),
    readyReplicas: int32('Machines in phase Running.'),
    replicas: int32('Machines of the MachineDeployment, in any phase.'),
    unavailableReplicas: int32('Machines that are missing or unavailable.'),
    updatedReplicas: int32('Machines with the current template.'),
  });
}

/** The kind MachineDeployment. */
export const machineDeployment: Definition = {
  kind: 'MachineDeployment',
  plural: 'machinedeployments',
  shortName: 'mcd',
  description: 'Maintains a number of Machines and updates them to new templates, like a Deployment for Pods.',
  columns: [
    {
      name: 'Ready',
      type: 'integer',
      jsonPath: '.status.readyReplicas',
      description: 'Number of Machines that are Running.',
    },
    { name: 'Desired', type: 'integer', jsonPath: '.spec.replicas', description: 'Desired number of Machines.' },
    {
      name: 'Up-to-date',
      type: 'integer',
      jsonPath: '.status.updatedReplicas',
      description: 'Number of Machines with the current template.',
    },
    {
      name: 'Available',
      type: 'integer',
      jsonPath: '.status.availableReplicas',
      description: 'Number of available Machines.',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Age of the object.' },
    wide('Class', 'string', '.spec.template.spec.class.name', 'MachineClass of new Machines.'),
    wide('Strategy', 'string', '.spec.strategy.type', 'How a new template reaches the machines.'),
    wide('Paused', 'boolean', '.spec.paused', 'Whether rollouts are paused.'),
    wide(
      'Progressing',
      'string',
      '.status.conditions[?(@.type=="Progressing")].reason',
      'Reason of condition Progressing.',
    ),
  ],
  hasStatus: true,
  hasScale: true,
  properties: { spec: machineDeploymentSpec(), status: machineDeploymentStatus() },
  rules: [SPEC_PRESENT],
};
