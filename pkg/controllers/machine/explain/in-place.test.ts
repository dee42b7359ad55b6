import { expect, test } from '@jest/globals';

import { machine } from '../../../../test/builders.ts';
import type { LastOperation } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import { explain } from './explain.ts';

const OWNER = { apiVersion: 'machine.sapcloud.io/v1alpha1', kind: 'MachineSet', name: 's', uid: 's', controller: true };

interface Case {
  readonly phase: MachinePhase;
  readonly condition?: string;
  readonly operation?: LastOperation;
  readonly keeps?: boolean;
  readonly reason: string;
  readonly waitingFor: RegExp;
  readonly nextStep: RegExp;
}

test.each<Case>([
  {
    phase: 'Running',
    condition: 'CandidateForUpdate',
    reason: 'CandidateForUpdate',
    waitingFor: /selected-for-update/,
    nextStep: /drained, then updated/,
  },
  {
    phase: 'Running',
    condition: 'SelectedForUpdate',
    operation: { type: 'DrainNode', description: 'Waiting for 1 pod. Initiate node drain' },
    reason: 'DrainingForUpdate',
    waitingFor: /pods/,
    nextStep: /updated/,
  },
  { phase: 'InPlaceUpdating', reason: 'InPlaceUpdating', waitingFor: /update-result/, nextStep: /timeout/ },
  {
    phase: 'InPlaceUpdateSuccessful',
    reason: 'InPlaceUpdateSuccessful',
    waitingFor: /m-1 to become healthy/,
    nextStep: /becomes Running; at the health timeout/,
  },
  {
    phase: 'InPlaceUpdateFailed',
    reason: 'InPlaceUpdateFailed',
    waitingFor: /update-result=successful/,
    nextStep: /at the health timeout/,
  },
  {
    phase: 'InPlaceUpdateFailed',
    keeps: true,
    reason: 'InPlaceUpdateFailed',
    waitingFor: /repair/,
    nextStep: /until then the machine is kept, because disableHealthTimeout/,
  },
])('$phase, $condition: $reason', ({ phase, condition, operation, keeps, reason, waitingFor, nextStep }) => {
  const told = explain(
    machine((m) => {
      m.status.currentStatus = { phase };
      if (condition !== undefined) {
        m.status.conditions = [{ type: 'InPlaceUpdate', status: 'True', reason: condition }];
      }
      if (operation !== undefined) m.status.lastOperation = operation;
      if (keeps === true) m.spec.disableHealthTimeout = true;
    }),
    0,
  );

  expect(told).toMatchObject({
    reason,
    waitingFor: expect.stringMatching(waitingFor),
    nextStep: expect.stringMatching(nextStep),
  });
});

test.each([
  {
    owned: false,
    message: /updated in place\.$/,
    nextStep: /^Nothing, once the user who selected Node m-1 has uncordoned it/,
  },
  {
    owned: true,
    message: /"kubectl taint node m-1 node\.gardener\.cloud\/critical-components-not-ready:NoSchedule-"/,
    nextStep: /^Nothing; /,
  },
])(
  'a machine that was updated works, and says what its Node may need; owned: $owned',
  ({ owned, message, nextStep }) => {
    const told = explain(
      machine((m) => {
        m.status.conditions = [{ type: 'InPlaceUpdate', status: 'True', reason: 'UpdateSuccessful' }];
        if (owned) m.metadata.ownerReferences = [OWNER];
      }),
      0,
    );

    expect(told).toMatchObject({
      reason: 'Running',
      message: expect.stringMatching(message),
      waitingFor: undefined,
      nextStep: expect.stringMatching(nextStep),
    });
  },
);
