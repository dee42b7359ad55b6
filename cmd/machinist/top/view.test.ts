import { describe, expect, test } from '@jest/globals';

import { eventAt, lease, machineIn, NOW_MS, topFacts, topView, work } from '../../../test/top-facts.ts';
import { MachineRows } from './machine-rows.ts';
import { API_SERVER, ordinal, viewOf } from './view.ts';

const DRAIN = {
  machine: 'default/m-1',
  purpose: 'deletion',
  since: '2026-01-01T00:08:00Z',
  failures: 0,
  isBlocked: true,
  message: 'Waiting for 1 pod: ns/a (PodDisruptionBudget b currently allows no eviction).',
  podsDeletedAt: '2026-01-01T00:12:00Z',
};
const RETRY = {
  machine: 'default/m-1',
  call: 'create',
  code: 'ResourceExhausted',
  message: 'no room',
  failures: 3,
  since: '2026-01-01T00:00:00Z',
  nextAttempt: '2026-01-01T00:10:40Z',
};
const READY = '[+] clusters ok: control: reachable\n[+] work ok\nreadyz check passed\n';
const METRICS = 'machinist_build_info{version="0.0.0"} 1\nmachinist_driver_up{provider="sim"} 1\n';

describe('the header', () => {
  test('says in one line who leads, and what is well', () => {
    const { health } = topView({ answers: [{ name: 'manager-0', readyz: READY, metrics: METRICS }] });

    expect(health).toEqual([
      {
        attention: 'ok',
        text: 'leader manager-0 for 5m · driver sim: connected · clusters reachable · no zone stopped · no alert',
      },
    ]);
  });

  test.each([
    { what: 'no process answers', change: { answers: [] }, says: 'no pod of a manager found; drivers' },
    {
      what: 'a process does not answer',
      change: { answers: [{ name: 'p', error: 'refused' }] },
      says: 'p: no answer: refused',
    },
    {
      what: 'a cluster is in an outage',
      change: { answers: [{ name: 'p', readyz: '[-] clusters failed: target: no answer since T', metrics: METRICS }] },
      says: 'p: clusters: target: no answer since T',
    },
    { what: 'nobody leads', change: { leases: [] }, says: 'no Lease of a manager found' },
    {
      what: 'a leader no longer renews its Lease',
      change: { leases: [{ ...lease('x'), spec: { ...lease('x').spec, renewTime: '2026-01-01T00:00:00.000000Z' } }] },
      says: 'machine-controller: x has not renewed the Lease for 10m; there is no leader',
    },
    {
      what: 'something may not be read',
      change: { troubles: [{ what: 'events', sinceMs: NOW_MS, message: 'events is forbidden', isRefused: true }] },
      says: 'events cannot be read: events is forbidden',
    },
  ])('says that $what', ({ change, says }) => {
    expect(topView(change).health).toContainEqual(
      expect.objectContaining({ attention: 'attention', text: expect.stringContaining(says) }),
    );
  });

  test('says since when the API server does not answer, and nothing of what may be different by now', () => {
    const troubles = [{ what: API_SERVER, sinceMs: NOW_MS - 100_000, message: 'connection refused', isRefused: false }];

    const { health } = topView({ troubles, answers: [] });

    expect(health).toEqual([
      {
        attention: 'attention',
        source: 'API server',
        text: 'API server: no answer since 00:08:20 (100s); what is shown is from then. connection refused',
      },
    ]);
    expect(topView({ troubles, isComplete: false }).health[0]?.text).toContain('nothing has been read yet');
  });
});

describe('pools', () => {
  test('have ready, desired and updated machines, and what keeps them from being complete', () => {
    const facts = topFacts();
    const [deployment] = facts.deployments;
    const late = { ...deployment, spec: { ...deployment?.spec, paused: true, replicas: 3 } } as typeof deployment;

    expect(topView().pools).toEqual([
      { name: 'pool', namespace: 'default', desired: 2, ready: 2, updated: 2, attention: 'ok', trouble: '' },
    ]);
    expect(topView({ deployments: late === undefined ? [] : [late] }).pools).toMatchObject([
      { desired: 3, attention: 'attention', trouble: expect.stringMatching(/^Paused: .* \(and 1 more\)$/) },
    ]);
  });

  test('are MachineSets, too, where they have no MachineDeployment', () => {
    expect(topView({ deployments: [] }).pools).toMatchObject([
      { name: 'pool-1', desired: 2, ready: 2, updated: undefined, attention: 'ok' },
    ]);
  });
});

test('machines are counted by their phases, the most frequent first', () => {
  const machines = [
    machineIn('Pending', 'a'),
    machineIn('Running', 'b'),
    machineIn('Running', 'c'),
    machineIn('', 'd'),
  ];

  expect(topView({ machines }).phases).toEqual([
    { phase: 'Running', count: 2 },
    { phase: '<none>', count: 1 },
    { phase: 'Pending', count: 1 },
  ]);
});

describe('drains', () => {
  test('name their pods, what blocks them, and until when', () => {
    const { drains, rows, needAttention } = topView({ work: [work({ drains: [DRAIN] })] });

    expect(drains).toEqual([
      {
        key: 'default/m-1',
        name: 'm-1',
        purpose: 'deletion',
        isBlocked: true,
        message: DRAIN.message,
        until: 'pods deleted at 00:12:00',
        inText: ' (in 2m)',
      },
    ]);
    expect(rows.find(({ name }) => name === 'm-1')).toMatchObject({ attention: 'attention', reason: 'DrainBlocked' });
    expect(needAttention).toBe(1);
  });

  test.each([
    {
      what: 'is retried',
      change: { nextAttempt: '2026-01-01T00:10:05Z' },
      until: 'next attempt at 00:10:05',
      inText: ' (in 5s)',
    },
    {
      what: 'is forced',
      change: { podsDeletedAt: undefined, forcedBy: 'timeout' },
      until: 'pods are deleted: timeout',
      inText: '',
    },
    { what: 'has no end', change: { podsDeletedAt: undefined }, until: 'since 00:08:00', inText: '' },
  ])('one that $what says so', ({ change, until, inText }) => {
    const drain = JSON.parse(JSON.stringify({ ...DRAIN, ...change })) as typeof DRAIN;

    expect(topView({ work: [work({ drains: [drain] })] }).drains).toMatchObject([{ until, inText }]);
  });

  test('are told by the Machines themselves where no process answers', () => {
    const draining = machineIn('Terminating', 'm-3', (m) => {
      m.metadata.deletionTimestamp = '2026-01-01T00:08:00Z';
      m.metadata.finalizers = ['machine.sapcloud.io/machine-controller-manager'];
      m.status.lastOperation = { type: 'Delete', state: 'Processing', description: 'Initiate node drain' };
    });

    expect(topView({ machines: [draining] }).drains).toMatchObject([
      { name: 'm-3', purpose: 'deletion', isBlocked: false },
    ]);
  });
});

describe('retries', () => {
  test('say when and the how-manieth, and when the machine becomes Failed', () => {
    const deadlines = [{ machine: 'default/m-1', timeout: 'creation' as const, failsAt: '2026-01-01T00:20:00Z' }];

    expect(topView({ work: [work({ retries: [RETRY], deadlines })] }).retries).toEqual([
      {
        name: 'm-1',
        what: 'create',
        cause: 'ResourceExhausted: no room',
        when: 'next attempt at 00:10:40 (in 40s), the 4th · becomes Failed at 00:20:00',
      },
    ]);
  });

  test('wait for their class, which is shown, too', () => {
    const exhausted = [
      { machineClass: 'default/class-1', message: 'no room', failures: 1, nextAttempt: '2026-01-01T00:11:00Z' },
    ];

    expect(
      topView({ work: [work({ retries: [RETRY], exhausted })] }).retries.map(({ name, when }) => `${name}: ${when}`),
    ).toEqual([
      'class class-1: next attempt at 00:11:00 (in 60s), the 2nd; all its machines wait',
      'm-1: next attempt at 00:11:00 (in 60s), the 4th; class class-1 waits for all',
    ]);
  });

  test.each([
    [1, '1st'],
    [2, '2nd'],
    [3, '3rd'],
    [4, '4th'],
    [11, '11th'],
    [12, '12th'],
    [13, '13th'],
    [21, '21st'],
    [112, '112th'],
  ])('%i is the %s', (n, want) => {
    expect(ordinal(n)).toBe(want);
  });
});

test('Events have the time of their last occurrence', () => {
  const events = [
    eventAt('2026-01-01T00:09:00Z', { type: 'Warning', reason: 'DrainBlocked', message: ' It waits.\n', count: 3 }),
  ];

  expect(topView({ events }).events).toEqual([
    { time: '00:09:00', isWarning: true, reason: 'DrainBlocked', object: 'Machine/m-1', message: 'It waits. (x3)' },
  ]);
});

describe('rows of machines', () => {
  test('are made again only of machines that have changed, and when a preservation ends', () => {
    const rows = new MachineRows();
    const preserved = machineIn('Running', 'm-9', (m) => {
      m.status.currentStatus.preserveExpiryTime = '2026-01-01T00:10:30Z';
    });
    const facts = topFacts({ machines: [...topFacts().machines, preserved] });

    const first = rows.of(facts);
    const second = rows.of({ ...facts, machines: [...facts.machines], nowMs: NOW_MS + 1_000 });
    const third = rows.of({ ...facts, nowMs: NOW_MS + 60_000 });

    expect(second.map((row, i) => row === first[i])).toEqual([true, true, true]);
    expect(first[2]).toMatchObject({ reason: 'Preserved', attention: 'attention' });
    expect(third[2]).toMatchObject({ reason: 'Running', attention: 'ok' });
  });

  test('say what their MachineDeployment says of an outage, and name it', () => {
    const facts = topFacts();
    const [deployment] = facts.deployments;
    const condition = { type: 'APIServerUnreachable', status: 'True', message: 'No answer since T.' } as const;
    const unreachable = { ...deployment, status: { conditions: [condition] } } as NonNullable<typeof deployment>;
    const machines = [machineIn('Unknown', 'm-1')];

    const [row] = topView({ deployments: [unreachable], machines }).rows;

    expect(row).toMatchObject({ pool: 'pool', message: expect.stringContaining('No answer since T.') });
    expect(viewOf(topFacts({ machines, sets: [] }), new MachineRows(), '').rows).toMatchObject([{ pool: 'pool-1' }]);
  });
});
