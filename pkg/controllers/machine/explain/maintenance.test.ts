import { expect, test } from '@jest/globals';

import { machine } from '../../../../test/builders.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import { explain } from './explain.ts';

const NOW = Date.parse('2026-01-02T00:00:00Z');
const BEGUN = { 'machine.sapcloud.io/maintenance-since': '2026-01-01T00:00:00Z' };
const HOOK = 'pre-drain.hook.machine.sapcloud.io/backup';

interface Case {
  readonly phase?: MachinePhase;
  readonly annotations: Record<string, string>;
  readonly mirrored?: string;
  readonly reason: string;
  readonly message: RegExp;
  readonly waitingFor: RegExp;
  readonly nextStep: RegExp;
}

test.each<Case>([
  {
    annotations: BEGUN,
    reason: 'MaintenanceRequested',
    message: /^Maintenance was requested\.$/,
    waitingFor: /controller/,
    nextStep: /when its Node is empty\. It ends when annotation machine\.sapcloud\.io\/maintenance is removed/,
  },
  {
    annotations: { ...BEGUN, [HOOK]: '' },
    reason: 'WaitingForHooks',
    message: /^Waiting for hooks: \S+backup\.$/,
    waitingFor: /annotations \S+backup to be removed by their owners/,
    nextStep: /when its Node is empty/,
  },
  {
    annotations: BEGUN,
    mirrored: 'Draining',
    reason: 'Draining',
    message: /^told by the Node$/,
    waitingFor: /the pods to leave/,
    nextStep: /when its Node is empty/,
  },
  {
    phase: 'Unknown',
    annotations: { ...BEGUN, 'machine.sapcloud.io/maintenance-node': 'uid' },
    mirrored: 'InMaintenance',
    reason: 'InMaintenance',
    message: /^told by the Node Created/,
    waitingFor: /annotation machine\.sapcloud\.io\/maintenance to be removed/,
    nextStep: /^It is not replaced meanwhile, whatever its health\. It ends when/,
  },
  {
    annotations: { 'machine.sapcloud.io/maintenance': 'yes' },
    reason: 'Running',
    message: /healthy\. Annotation machine\.sapcloud\.io\/maintenance of the Machine is "yes"/,
    waitingFor: /^<nothing>$/,
    nextStep: /Nothing/,
  },
  {
    annotations: {},
    mirrored: 'NotInMaintenance',
    reason: 'Running',
    message: /healthy\.$/,
    waitingFor: /^<nothing>$/,
    nextStep: /Nothing/,
  },
  {
    phase: 'Failed',
    annotations: BEGUN,
    reason: 'Failed',
    message: /./,
    waitingFor: /./,
    nextStep: /./,
  },
])('a machine with $annotations whose Node says $mirrored is $reason', (given) => {
  const { phase = 'Running', annotations, mirrored, reason, message, waitingFor, nextStep } = given;
  const told = explain(
    machine((m) => {
      m.metadata.annotations = annotations;
      m.metadata.ownerReferences = [{ apiVersion: 'x', kind: 'MachineSet', name: 's', uid: 's', controller: true }];
      m.status.currentStatus = { phase };
      const condition = { type: 'Maintenance', status: 'False', reason: mirrored ?? '', message: 'told by the Node' };
      m.status.conditions = mirrored === undefined ? [] : [condition];
    }),
    NOW,
  );

  expect(told.reason).toBe(reason);
  expect(told.message).toMatch(message);
  expect(told.waitingFor ?? '<nothing>').toMatch(waitingFor);
  expect(told.nextStep).toMatch(nextStep);
});
