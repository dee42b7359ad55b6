import { describe, expect, test } from '@jest/globals';

import { machineDeployment } from '../../../test/builders.ts';
import type { BuiltMachineDeployment } from '../../../test/builders.ts';
import { REVISION_ANNOTATION } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import { rolloutStatus } from './status.ts';

const pool = (change: (d: BuiltMachineDeployment) => void): BuiltMachineDeployment =>
  machineDeployment((d) => {
    d.metadata.name = 'pool';
    d.spec.replicas = 5;
    d.status = { observedGeneration: 1, replicas: 5, updatedReplicas: 5, availableReplicas: 5 };
    change(d);
  });
const waiting = (what: string): string => `Waiting for machine deployment "pool" rollout to finish: ${what}...`;

describe('the status of a rollout', () => {
  test.each<{ title: string; change: (d: BuiltMachineDeployment) => void; text: string; isDone?: boolean }>([
    {
      title: 'a spec that the controller has not seen',
      change: (d) => (d.metadata.generation = 2),
      text: 'Waiting for machine deployment spec update to be observed...',
    },
    {
      title: 'no status at all',
      change: (d) => (d.status = {}),
      text: 'Waiting for machine deployment spec update to be observed...',
    },
    {
      title: 'missing new machines',
      change: (d) => (d.status.updatedReplicas = 2),
      text: waiting('2 out of 5 new replicas have been updated'),
    },
    {
      title: 'old machines',
      change: (d) => (d.status.replicas = 7),
      text: waiting('2 old replicas are pending termination'),
    },
    {
      title: 'new machines that are not available',
      change: (d) => (d.status.availableReplicas = 4),
      text: waiting('4 of 5 updated replicas are available'),
    },
    {
      title: 'nothing left to do',
      change: () => undefined,
      text: 'machine deployment "pool" successfully rolled out',
      isDone: true,
    },
  ])('tells of $title', ({ change, text, isDone = false }) => {
    expect(rolloutStatus(pool(change), 0)).toEqual({ text, isDone });
  });

  test('names what fails, in one line, as long as it is not done', () => {
    const failing = (description: string) => ({ state: 'Failed' as const, description });
    const failedMachines = [
      { name: 'pool-b', lastOperation: failing('no quota') },
      { name: 'pool-a', lastOperation: failing('class "c"\nis missing') },
    ];
    const waits = pool((d) => {
      Object.assign(d.status, { updatedReplicas: 2, failedMachines });
      d.status.conditions = [
        { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'quota exceeded' },
        { type: 'Available', status: 'True', message: 'fine' },
      ];
    });
    const done = pool((d) => (d.status.failedMachines = failedMachines.slice(1)));

    expect(rolloutStatus(waits, 0).trouble).toBe(
      'ReplicaFailure: quota exceeded; 2 machines are failing, for example pool-a: class "c" is missing',
    );
    expect(rolloutStatus(done, 0)).toEqual({ text: 'machine deployment "pool" successfully rolled out', isDone: true });
  });

  test('tells of a set that the API server refuses, and of a pause', () => {
    const refused = pool((d) => {
      d.status.updatedReplicas = 0;
      d.status.conditions = [
        { type: 'Progressing', status: 'False', reason: 'MachineSetCreateError', message: 'labels: Invalid value' },
      ];
    });
    const paused = pool((d) => {
      d.status.updatedReplicas = 0;
      d.spec.paused = true;
      d.status.conditions = [{ type: 'Progressing', status: 'True', reason: 'FoundNewMachineSet', message: 'x' }];
    });

    expect([refused, paused].map((d) => rolloutStatus(d, 0).trouble)).toEqual([
      'MachineSetCreateError: labels: Invalid value',
      'Paused: nothing is rolled out until the rollout is resumed',
    ]);
  });

  test.each([
    {
      by: 'its condition',
      change: (d: BuiltMachineDeployment) =>
        (d.status.conditions = [
          { type: 'Frozen', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z', message: 'pool-a has 9 >= 7' },
        ]),
      says: 'Frozen since 2026-01-01T00:00:00Z, no machines are created: pool-a has 9 >= 7; ',
    },
    {
      by: 'its label alone',
      change: (d: BuiltMachineDeployment) => (d.metadata.labels['freeze'] = 'True'),
      says: 'Frozen, no machines are created: it has label freeze=True; ',
    },
  ])('tells of a freeze that $by shows, and what ends it', ({ change, says }) => {
    const frozen = pool((d) => {
      d.status.availableReplicas = 4;
      change(d);
    });

    expect(rolloutStatus(frozen, 0)).toEqual({
      text: waiting('4 of 5 updated replicas are available'),
      isDone: false,
      trouble: `${says}it is unfrozen when there are few enough machines, or by annotation safety.machine.sapcloud.io/unfreeze=True on this MachineDeployment`,
    });
  });

  test.each(['WaitingForUpdateOrder', 'WaitingForMaintenance'])('tells whom it waits for by %s', (reason) => {
    const held = pool((d) => {
      d.status.updatedReplicas = 0;
      d.status.conditions = [{ type: 'Progressing', status: 'Unknown', reason, message: 'Waits for cp' }];
    });

    expect(rolloutStatus(held, 0).trouble).toBe(`${reason}: Waits for cp`);
  });

  test('tells of a freeze that says itself what ends it', () => {
    const frozen = pool((d) => {
      d.status.availableReplicas = 4;
      d.status.conditions = [
        { type: 'Frozen', status: 'True', reason: 'CreationLimitReached', message: 'pool has created 29 Machines' },
      ];
    });

    expect(rolloutStatus(frozen, 0).trouble).toBe('Frozen: pool has created 29 Machines');
  });

  test('is an error once the progress deadline has passed', () => {
    const stuck = pool((d) => {
      d.status.conditions = [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }];
    });

    expect(() => rolloutStatus(stuck, 0)).toThrow('machine deployment "pool" exceeded its progress deadline');
  });

  test('is an error when another revision was asked for', () => {
    const second = pool((d) => (d.metadata.annotations[REVISION_ANNOTATION] = '2'));

    expect(rolloutStatus(second, 2).isDone).toBe(true);
    expect(() => rolloutStatus(second, 1)).toThrow('desired revision (1) is different from the running revision (2)');
  });
});
