import { describe, expect, test } from '@jest/globals';

import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { machine } from '../../../test/builders.ts';
import { hold, HOLD_KINDS, holdOf, withHold, type Hold } from './replacement-hold.ts';
import { replacementHold } from './replacement-held-condition.ts';

function held(...by: Hold[]): Machine {
  return machine((m) => {
    m.status.currentStatus.phase = 'Unknown';
    m.status.lastOperation.description = by.reduce(withHold, 'Machine m-1 is unhealthy.');
    const last = by.at(-1);
    if (last !== undefined) m.status.lastOperation.errorCode = last.code;
  });
}

describe('what holds a machine back', () => {
  test.each(HOLD_KINDS)('is read from what the machine says: %s', (kind) => {
    expect(holdOf(held(hold(kind, 'a')))).toEqual(hold(kind, 'a'));
    expect(holdOf(held(hold(kind)))?.kind).toBe(kind);
  });

  test('is told by its code, whatever the words say', () => {
    const worded = held(hold('limit'));
    delete worded.status?.lastOperation?.errorCode;

    expect(holdOf(worded)).toBeUndefined();
  });

  test('is only the last of several, and leaves what is wrong untouched', () => {
    const one = held(hold('limit'), hold('zone', 'a'), hold('grace'));

    expect(holdOf(one)?.kind).toBe('grace');
    expect(withHold(one.status?.lastOperation?.description ?? '', undefined)).toBe('Machine m-1 is unhealthy.');
  });

  test('is nothing for a machine that does not say so, or has recovered or failed since', () => {
    const recovered = held(hold('zone'));
    const failed = held(hold('zone'));
    recovered.status = { ...recovered.status, currentStatus: { phase: 'Running' } };
    failed.status = { ...failed.status, currentStatus: { phase: 'Failed' } };

    expect([held(), recovered, failed].map(holdOf)).toEqual([undefined, undefined, undefined]);
  });
});

describe('the condition of a MachineDeployment', () => {
  test.each([
    { what: 'nothing while no machine waits', machines: [machine()], want: { reason: undefined } },
    {
      what: 'one machine that waits for others',
      machines: [held(hold('limit')), machine()],
      want: {
        reason: 'TooManyReplacements',
        message:
          'One unhealthy machine is not replaced: annotation machine.sapcloud.io/max-replacements of its MachineDeployment currently allows no more replacements.',
      },
    },
    {
      what: 'the zone before the limit',
      machines: [held(hold('limit')), held(hold('zone', 'a'))],
      want: {
        reason: 'ZoneUnhealthy',
        message:
          '2 unhealthy machines are not replaced: too many machines of zone a became unhealthy at once, so replacing them would not help; restore the zone, or delete a Machine to force its replacement.',
      },
    },
    { what: 'replacement stopped', machines: [held(hold('stopped'))], want: { reason: 'ReplacementStopped' } },
    {
      what: 'one after the other',
      machines: [held(hold('limit')), held(hold('pace'))],
      want: { reason: 'ReplacementPaced' },
    },
    { what: 'a young leader', machines: [held(hold('grace'))], want: { reason: 'SafetyGrace' } },
  ])('tells of $what', ({ machines, want }) => {
    expect({ reason: undefined, ...replacementHold(machines) }).toMatchObject({ ...want });
  });
});
