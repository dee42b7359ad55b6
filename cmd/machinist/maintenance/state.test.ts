import { describe, expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import {
  endMaintenancePatch,
  type MaintenanceGoal,
  maintenanceState,
  nodeMayAsk,
  startOf,
  maintenanceTimeoutText,
} from './state.ts';

const ASKED = { 'machine.sapcloud.io/maintenance': 'true' };
const BEGUN = { 'machine.sapcloud.io/maintenance-since': '2026-01-01T00:00:00Z' };
const THERE = { ...BEGUN, 'machine.sapcloud.io/maintenance-node': 'uid' };
const GIVEN_BACK = { ...BEGUN, 'machine.sapcloud.io/maintenance-node': 'given-back' };

function one(annotations: Record<string, string>, reason?: string): Machine {
  return machine((m) => {
    m.metadata.annotations = annotations;
    m.status.conditions =
      reason === undefined ? [] : [{ type: 'Maintenance', status: 'False', reason, message: 'as the Node says' }];
  });
}

const withoutNode = (annotations: Record<string, string>): Machine =>
  machine((m) => Object.assign(m.metadata, { annotations, labels: {} }));

const deleted = (annotations: Record<string, string>): Machine =>
  machine((m) => Object.assign(m.metadata, { annotations, deletionTimestamp: '2026-01-01T00:00:00Z' }));

describe('where a maintenance stands', () => {
  test.each<{ goal: MaintenanceGoal; of: Machine; text: string; isDone: boolean }>([
    { goal: 'start', of: one(ASKED), text: 'Requested: Maintenance was requested.', isDone: false },
    { goal: 'start', of: one({ ...ASKED, ...BEGUN }, 'Draining'), text: 'Draining: as the Node says', isDone: false },
    {
      goal: 'start',
      of: one({ ...ASKED, ...THERE }, 'InMaintenance'),
      text: 'InMaintenance: as the Node says',
      isDone: true,
    },
    { goal: 'end', of: one(THERE, 'InMaintenance'), text: 'InMaintenance: as the Node says', isDone: false },
    { goal: 'end', of: one(GIVEN_BACK, 'UncordonFailed'), text: 'UncordonFailed: as the Node says', isDone: false },
    { goal: 'end', of: one({}, 'NotInMaintenance'), text: 'is not in maintenance', isDone: true },
    { goal: 'end', of: deleted({}), text: 'is not in maintenance', isDone: true },
    { goal: 'status', of: one({}), text: 'is not in maintenance', isDone: true },
    { goal: 'status', of: one({ ...ASKED, ...BEGUN }, 'Draining'), text: 'Draining: as the Node says', isDone: false },
    {
      goal: 'status',
      of: one({ 'machine.sapcloud.io/maintenance': 'yes' }),
      text: 'InvalidValue: Annotation machine.sapcloud.io/maintenance of the Machine is "yes", but must be true or false: it has no effect.',
      isDone: true,
    },
  ])('$goal: $text', ({ goal, of, text, isDone }) => {
    expect(maintenanceState(of, goal)).toEqual({ text: `machine "m-1" ${text}`, isDone });
  });

  test.each([
    { what: 'is being deleted', of: deleted(ASKED), error: 'machine "m-1" is being deleted' },
    { what: 'was withdrawn', of: one({}), error: 'maintenance of machine "m-1" is no longer requested' },
  ])('no start is waited for that $what', ({ of, error }) => {
    expect(() => maintenanceState(of, 'start')).toThrow(error);
  });
});

test.each<{ what: string; goal: MaintenanceGoal; of: Machine; says: string }>([
  {
    what: 'a drain',
    goal: 'start',
    of: one({ ...ASKED, ...BEGUN }, 'Draining'),
    says:
      'machine "m-1" Draining: as the Node says; it continues; show it with: machinist describe machine -n default m-1, ' +
      'end it with: machinist maintenance end -n default m-1',
  },
  {
    what: 'a manager that has done nothing about it',
    goal: 'start',
    of: Object.assign(one(ASKED), { status: { lastOperation: { description: 'Creating machine on cloud provider' } } }),
    says:
      'machine "m-1" Requested: Maintenance was requested. Last operation: Creating machine on cloud provider; ' +
      'it continues; show it with: machinist describe machine -n default m-1, end it with: machinist maintenance end -n default m-1',
  },
  {
    what: 'a machine whose Node may request it as well',
    goal: 'end',
    of: one(THERE, 'InMaintenance'),
    says:
      'machine "m-1" InMaintenance: as the Node says; it continues; show it with: machinist describe machine -n default m-1; ' +
      'if its Node requests it as well, end that with: kubectl annotate node m-1 machine.sapcloud.io/maintenance-',
  },
  {
    what: 'a Node that is not given back',
    goal: 'end',
    of: one(GIVEN_BACK, 'UncordonFailed'),
    says:
      'machine "m-1" UncordonFailed: as the Node says; it continues; ' +
      'show it with: machinist describe machine -n default m-1',
  },
])('a wait for $what that takes too long says what it was for', ({ goal, of, says }) => {
  expect(maintenanceTimeoutText(of, goal)).toBe(says);
});

describe('what is asked of a Machine', () => {
  test('to start, unless it was asked before, or the machine is being deleted', () => {
    expect(startOf(one({}))).toEqual(ASKED);
    expect(startOf(one({ 'machine.sapcloud.io/maintenance': 'yes' }))).toEqual(ASKED);
    expect(startOf(one(ASKED))).toBeUndefined();
    expect(() => startOf(deleted({}))).toThrow('is being deleted');
  });

  test.each([
    { what: 'in maintenance', of: one({ ...ASKED, ...THERE }, 'InMaintenance'), isSaid: true },
    { what: 'that is drained for it', of: one({ ...ASKED, ...BEGUN }, 'Draining'), isSaid: true },
    { what: 'without a Node', of: withoutNode({ ...ASKED, ...BEGUN }), isSaid: false },
    { what: 'whose Node is being given back', of: one(GIVEN_BACK, 'UncordonFailed'), isSaid: false },
    { what: 'with an invalid request', of: one({ 'machine.sapcloud.io/maintenance': 'yes' }), isSaid: false },
  ])('of a machine $what, that its Node may request the same is said: $isSaid', ({ of, isSaid }) => {
    expect(nodeMayAsk(of)).toBe(
      isSaid
        ? '; if its Node requests it as well, end that with: kubectl annotate node m-1 machine.sapcloud.io/maintenance-'
        : '',
    );
  });

  test('to end, unless it is over, or its Node asks for it', () => {
    expect(endMaintenancePatch(one({ ...ASKED, ...THERE }))).toEqual({ 'machine.sapcloud.io/maintenance': null });
    expect(endMaintenancePatch(one({ 'machine.sapcloud.io/maintenance': 'yes' }))).toEqual({
      'machine.sapcloud.io/maintenance': null,
    });
    expect(endMaintenancePatch(one({}))).toBeUndefined();
    expect(endMaintenancePatch(one(GIVEN_BACK, 'InMaintenance'))).toBeUndefined();
    expect(() => endMaintenancePatch(one(THERE, 'InMaintenance'))).toThrow(
      'was requested on its Node; to end it: kubectl annotate node m-1 machine.sapcloud.io/maintenance-',
    );
  });
});
