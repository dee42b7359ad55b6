import { expect, test } from '@jest/globals';

import { eventAt, lease, machineIn, NOW_MS, topFacts, topView, work } from '../../../test/top-facts.ts';
import { changeLine, changesBetween } from './changes.ts';
import type { TopFacts } from './facts.ts';
import { MachineRows } from './machine-rows.ts';
import { viewOf } from './view.ts';

const [first, second] = topFacts().machines;

/** The lines of a change of facts, one second later. */
function linesOf(after: Partial<TopFacts>, before: Partial<TopFacts> = {}): readonly string[] {
  const rows = new MachineRows();
  const was = viewOf(topFacts(before), rows, '0.0.0');
  const is = viewOf(topFacts({ nowMs: NOW_MS + 1_000, ...after }), rows, '0.0.0');
  return changesBetween(was, is).map((change) => changeLine(change, false).replace('2026-01-01T00:10:01Z ', ''));
}

const RETRY = {
  machine: 'default/m-1',
  call: 'create',
  code: 'ResourceExhausted',
  message: 'no room',
  failures: 3,
  since: '2026-01-01T00:00:00Z',
  nextAttempt: '2026-01-01T00:10:40Z',
};

test.each<{ what: string; before?: Partial<TopFacts>; after: Partial<TopFacts>; lines: readonly string[] }>([
  { what: 'nothing but time', after: {}, lines: [] },
  {
    what: 'another phase of a machine',
    after: {
      machines: [
        machineIn('Unknown', 'm-1', (m) => (m.status.lastOperation = { description: 'It is ill.' })),
        ...(second === undefined ? [] : [second]),
      ],
    },
    lines: ['! machine/m-1 Running -> Unknown (Unhealthy): It is ill.'],
  },
  {
    what: 'machines that come and go',
    before: { machines: topFacts().machines.slice(0, 1) },
    after: { machines: [machineIn('Running', 'm-3')] },
    lines: ['  machine/m-3 created: Running', '  machine/m-1 deleted'],
  },
  {
    what: 'a machine that was replaced under its name',
    after: {
      machines: [
        machineIn('Running', 'm-1', (m) => (m.metadata.uid = 'other')),
        ...(second === undefined ? [] : [second]),
      ],
    },
    lines: ['  machine/m-1 created: Running', '  machine/m-1 deleted'],
  },
  { what: 'a pool that is gone', after: { deployments: [], sets: [] }, lines: ['  pool/pool deleted'] },
  { what: 'another leader', after: { leases: [lease('manager-1')] }, lines: ['  manager leader manager-1'] },
  {
    what: 'an outage',
    after: { troubles: [{ what: 'API server', sinceMs: NOW_MS, message: 'refused', isRefused: false }] },
    lines: ['! cluster API server: no answer since 00:10:00 (1s); what is shown is from then. refused'],
  },
  {
    what: 'the end of an outage',
    before: { troubles: [{ what: 'API server', sinceMs: NOW_MS, message: 'refused', isRefused: false }] },
    after: {},
    lines: ['  cluster over: API server: no answer since 00:10:00 (0s); what is shown is from then. refused'],
  },
  {
    what: 'a refusal that is told in other words',
    before: { troubles: [{ what: 'events', sinceMs: NOW_MS, message: 'cannot watch', isRefused: true }] },
    after: { troubles: [{ what: 'events', sinceMs: NOW_MS, message: 'cannot list', isRefused: true }] },
    lines: [],
  },
  {
    what: 'pods of the manager that may not be read, not that there are none',
    before: {},
    after: {
      answers: [],
      troubles: [{ what: 'pods of the manager', sinceMs: NOW_MS, message: 'forbidden', isRefused: true }],
    },
    lines: ['! cluster pods of the manager cannot be read: forbidden'],
  },
  {
    what: 'a call that failed, once for each attempt',
    before: { work: [work({ retries: [RETRY] })] },
    after: { work: [work({ retries: [RETRY, { ...RETRY, machine: 'default/m-2' }] })] },
    lines: ['  machine/m-2 create failed; next attempt at 00:10:40 (in 39s), the 4th: ResourceExhausted: no room'],
  },
  {
    what: 'a warning',
    before: { events: [eventAt('2026-01-01T00:09:00Z', { type: 'Warning' })] },
    after: {
      events: [
        eventAt('2026-01-01T00:09:00Z', { type: 'Warning' }),
        eventAt('2026-01-01T00:09:30Z'),
        eventAt('2026-01-01T00:10:00Z', { type: 'Warning', reason: 'DrainBlocked', message: 'It\nwaits.' }),
      ],
    },
    lines: ['! machine/m-1 Event DrainBlocked: It waits.'],
  },
])('of $what so much is printed', ({ before, after, lines }) => {
  expect(linesOf(after, before)).toEqual(lines);
});

test('at first it is printed how everything is, and each machine that needs attention', () => {
  const view = topView({
    machines: [machineIn('Failed', 'm-3'), ...(first === undefined ? [] : [first])],
    namespace: undefined,
  });

  expect(changesBetween(undefined, view).map((change) => changeLine(change, true))).toEqual([
    '2026-01-01T00:10:00Z   manager leader manager-0',
    '2026-01-01T00:10:00Z   default/pool/pool 2/2 ready, 2 updated',
    '2026-01-01T00:10:00Z ! machines 2 in total: 1 Failed, 1 Running; 1 need attention',
    expect.stringMatching(/^2026-01-01T00:10:00Z ! default\/machine\/m-3 Failed: /),
  ]);
});
