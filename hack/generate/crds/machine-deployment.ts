import { MACHINE_DEPLOYMENT_CONDITION_TYPES } from '../../../pkg/apis/machine/v1alpha1/conditions.ts';
import type { Definition } from './definition.ts';
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
      'How many Machines beyond the desired may exist: a number, or a percentage of replicas, rounded up.',
    ),
    maxUnavailable: limit(
      'maxUnavailable',
      'How many of the desired Machines may be missing: a number, or a percentage of replicas up to 100%, rounded down.',
      [notMoreThanAll('maxUnavailable')],
    ),
  };
}

function strategy(): Schema {
  return object('How a new template reaches the machines.', {
    inPlaceUpdate: object('For type InPlaceUpdate: how machines are updated without being replaced.', {
      ...limits(),
      orchestrationType: text(
        'Auto: machines are chosen by the controller. Manual: by labels that a user or another controller sets.',
      ),
    }),
    rollingUpdate: object('For type RollingUpdate: how far the rollout may go at once.', limits()),
    type: text('RollingUpdate, Recreate or InPlaceUpdate.'),
  });
}

function count(field: string, description: string): Schema {
  return int32(description, { 'x-kubernetes-validations': [notNegative(field)] });
}

function machineDeploymentSpec(): Schema {
  return object(
    'What the deployment should be.',
    {
      autoPreserveFailedMachineMax: count(
        'autoPreserveFailedMachineMax',
        'How many failed Machines may be preserved without being asked.',
      ),
      minReadySeconds: count('minReadySeconds', 'Without effect on availability.'),
      paused: flag('True: rollouts stop; scaling continues.'),
      progressDeadlineSeconds: count(
        'progressDeadlineSeconds',
        'Seconds without progress after which the rollout is reported as stuck. Absent: never.',
      ),
      // That it is not negative is checked by the scale subresource.
      replicas: int32('How many Machines there should be.', { default: 0 }),
      revisionHistoryLimit: count(
        'revisionHistoryLimit',
        'How many old MachineSets are kept for a rollback. Absent: all of them.',
      ),
      rollbackTo: object('Deprecated: asks for a rollback; removed when it is done.', {
        revision: int64('Revision to go back to; 0 is the one before.'),
      }),
      selector: selector(
        'Which MachineSets and Machines belong to the deployment; it must select those of the template, and cannot be changed.',
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
  return object('What is known of the deployment.', {
    availableReplicas: int32('Machines in phase Running or Available.'),
    collisionCount: int32('How often the name of a new MachineSet was taken.'),
    conditions: listOf(
      'Conditions of the deployment.',
      object(
        'A condition of the deployment.',
        {
          lastTransitionTime: time('When the status last changed.'),
          lastUpdateTime: time('When the condition was last written.'),
          message: text('Details, for humans.'),
          reason: text('Cause of the last change, in one word.'),
          status: text('True, False or Unknown.'),
          type: text(oneOf(MACHINE_DEPLOYMENT_CONDITION_TYPES)),
        },
        { required: ['status', 'type'] },
      ),
    ),
    failedMachines: failedMachines(),
    observedGeneration: int64('Generation of the spec that the status belongs to.'),
    preservedFailedReplicas: int32('Failed Machines that are preserved.'),
    readyReplicas: int32('Machines in phase Running.'),
    replicas: int32('Machines that belong to the deployment, whatever their phase.'),
    unavailableReplicas: int32('Machines that are still missing, or there but not available.'),
    updatedReplicas: int32('Machines made from the present template.'),
  });
}

/** The kind MachineDeployment. */
export const machineDeployment: Definition = {
  kind: 'MachineDeployment',
  plural: 'machinedeployments',
  shortName: 'mcd',
  description: 'Keeps a number of Machines alive and rolls them to new templates, as a Deployment does with Pods.',
  columns: [
    { name: 'Ready', type: 'integer', jsonPath: '.status.readyReplicas', description: 'How many Machines run.' },
    { name: 'Desired', type: 'integer', jsonPath: '.spec.replicas', description: 'How many Machines there should be.' },
    {
      name: 'Up-to-date',
      type: 'integer',
      jsonPath: '.status.updatedReplicas',
      description: 'How many Machines are made from the present template.',
    },
    {
      name: 'Available',
      type: 'integer',
      jsonPath: '.status.availableReplicas',
      description: 'How many Machines are available.',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Age of the object.' },
  ],
  hasStatus: true,
  hasScale: true,
  properties: { spec: machineDeploymentSpec(), status: machineDeploymentStatus() },
  rules: [SPEC_PRESENT],
};
