import { expect, test } from '@jest/globals';

import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import { machine } from '../../test/builders.ts';
import type { WorkInProgress } from '../health/work-in-progress.ts';
import { workOfMachine } from './machine-work.ts';

const NONE: WorkInProgress = { activities: [], retries: [], exhausted: [], drains: [] };
const RETRY = {
  machine: 'default/m-1',
  call: 'create',
  failures: 3,
  since: '2026-01-01T00:00:00Z',
  nextAttempt: '2026-01-01T00:10:40Z',
};
const EXHAUSTED = {
  machineClass: 'default/class-1',
  message: 'no room',
  failures: 2,
  nextAttempt: '2026-01-01T00:11:00Z',
};
const DRAIN = {
  machine: 'default/m-1',
  purpose: 'deletion',
  since: '2026-01-01T00:00:00Z',
  failures: 1,
  isBlocked: false,
};
const CALL = { machine: 'default/m-1', activity: 'create', since: '2026-01-01T00:09:00Z', isQueued: false };
const { machine: _machine, ...RUNNING } = CALL;
const withVM = machine();
const withoutVM = machine((m) => void delete m.spec.providerID);
const deleted = machine((m) => {
  delete m.spec.providerID;
  m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
});

test.each<{ what: string; one: Machine; work: Partial<WorkInProgress>; want: object | undefined }>([
  { what: 'nothing that is known', one: withVM, work: {}, want: undefined },
  {
    what: 'work on other machines',
    one: withVM,
    work: {
      activities: [{ ...CALL, machine: 'other/m-1' }],
      retries: [{ ...RETRY, machine: 'default/m-2' }],
      drains: [{ ...DRAIN, machine: 'default/m-2', nextAttempt: RETRY.nextAttempt }],
      exhausted: [EXHAUSTED],
    },
    want: undefined,
  },
  { what: 'a call', one: withVM, work: { activities: [CALL] }, want: { running: [RUNNING] } },
  {
    what: 'a failed call',
    one: withVM,
    work: { retries: [{ ...RETRY, call: 'delete' }] },
    want: { running: [], nextAttempt: { of: 'delete', at: RETRY.nextAttempt, attempt: 4 } },
  },
  {
    what: 'a drain that failed later than a call',
    one: withVM,
    work: { drains: [{ ...DRAIN, nextAttempt: '2026-01-01T00:10:50Z' }], retries: [RETRY] },
    want: { running: [], nextAttempt: { of: 'drain', at: '2026-01-01T00:10:50Z', attempt: 2 } },
  },
  {
    what: 'a failed creation of an exhausted class',
    one: withoutVM,
    work: { retries: [RETRY], exhausted: [EXHAUSTED] },
    want: {
      running: [],
      nextAttempt: { of: 'create', at: EXHAUSTED.nextAttempt, attempt: 4, waitsForClass: 'class-1' },
    },
  },
  {
    what: 'a failed creation that waits longer than its class',
    one: withoutVM,
    work: { retries: [{ ...RETRY, nextAttempt: '2026-01-01T00:12:00Z' }], exhausted: [EXHAUSTED] },
    want: {
      running: [],
      nextAttempt: { of: 'create', at: '2026-01-01T00:12:00Z', attempt: 4, waitsForClass: 'class-1' },
    },
  },
  {
    what: 'an exhausted class, untried',
    one: withoutVM,
    work: { exhausted: [EXHAUSTED, { ...EXHAUSTED, machineClass: 'other/class-1' }] },
    want: {
      running: [],
      nextAttempt: { of: 'create', at: EXHAUSTED.nextAttempt, attempt: 1, waitsForClass: 'class-1' },
    },
  },
  {
    what: 'its end by a timeout',
    one: withVM,
    work: {
      deadlines: [
        { machine: 'default/m-2', timeout: 'health', failsAt: '2026-01-01T00:19:00Z' },
        { machine: 'default/m-1', timeout: 'creation', failsAt: '2026-01-01T00:20:00Z' },
      ],
    },
    want: { running: [], failure: { at: '2026-01-01T00:20:00Z', timeout: 'creation' } },
  },
  { what: 'an exhausted class, being deleted', one: deleted, work: { exhausted: [EXHAUSTED] }, want: undefined },
])('of $what a machine is told what concerns it', ({ one, work, want }) => {
  expect(workOfMachine(one, [NONE, { ...NONE, ...work }])).toEqual(want);
});
