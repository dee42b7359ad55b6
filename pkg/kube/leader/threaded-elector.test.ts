import { setImmediate } from 'node:timers/promises';

import { describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { leaderMetrics } from '../../base/metrics/leader.ts';
import type { ElectorReport, ElectorState, LeaseOrder } from './lease-messages.ts';
import { ThreadedElector } from './threaded-elector.ts';

const NAME = 'machine-controller';
const STATE: ElectorState = {
  isLeading: false,
  lease: undefined,
  holder: undefined,
  trouble: undefined,
  isSuspended: false,
  ended: undefined,
};
const LEADING: ElectorReport = { kind: 'state', name: NAME, state: { ...STATE, isLeading: true } };
const ACQUIRED: ElectorReport = { kind: 'acquired', name: NAME, isLeading: true };
const ENDED: ElectorReport = { kind: 'state', name: NAME, state: { ...STATE, ended: 'lost leadership: a thief' } };
const LOST: ElectorReport = { kind: 'lost', name: NAME, reason: 'a thief' };
const RELEASED: ElectorReport = { kind: 'released', name: NAME };

/** An elector without a thread: the test says what it hears. `lost` aborts what is under way, as a process that ends does. */
function start() {
  const orders: LeaseOrder['kind'][] = [];
  const lost: string[] = [];
  const fence = { memory: new SharedArrayBuffer(8), closed: 0, close: () => void (fence.closed += 1) };
  const process = new AbortController();
  const elector = new ThreadedElector(
    {
      name: NAME,
      fence,
      metrics: leaderMetrics(new Registry()),
      announce: () => undefined,
      lost(reason) {
        lost.push(reason);
        process.abort(new Error('the process ends'));
      },
    },
    { start: () => undefined, send: ({ kind }) => orders.push(kind) },
  );
  const mutations = Promise.withResolvers<void>();
  const settled: string[] = [];
  const note = (what: string, promise: Promise<void>): void => {
    promise.then(
      () => settled.push(what),
      () => settled.push(`${what}: given up`),
    );
  };
  const events = {
    acquire: () => note('acquire', elector.acquire(process.signal)),
    leads: () => [LEADING, ACQUIRED].forEach((report) => elector.onMessage(report)),
    ended: () => elector.onMessage(ENDED),
    lost: () => elector.onMessage(LOST),
    release: () =>
      note(
        'release',
        elector.release(() => mutations.promise),
      ),
    mutationsEnd: () => mutations.resolve(),
    released: () => elector.onMessage(RELEASED),
    threadDies: () => elector.threadEnded('it died'),
  };
  return { elector, events, fence, lost, orders, settled };
}

const DIED = 'leadership of machine-controller was lost: it died';

describe('when the thread of the Leases dies, neither acquire nor release waits for it', () => {
  test.each([
    { order: 'threadDies release mutationsEnd', settled: ['release'], lost: [DIED] },
    { order: 'release mutationsEnd threadDies', settled: ['release'], lost: [] },
    {
      order: 'threadDies acquire release mutationsEnd',
      settled: ['acquire: given up', 'release'],
      lost: [DIED],
    },
    {
      order: 'acquire threadDies release mutationsEnd',
      settled: ['acquire: given up', 'release'],
      lost: [DIED],
    },
    {
      order: 'acquire release threadDies mutationsEnd',
      settled: ['acquire: given up', 'release'],
      lost: [DIED],
    },
    { order: 'acquire leads threadDies release mutationsEnd', settled: ['acquire', 'release'], lost: [DIED] },
    { order: 'acquire leads release threadDies mutationsEnd', settled: ['acquire', 'release'], lost: [DIED] },
    { order: 'acquire leads release mutationsEnd threadDies', settled: ['acquire', 'release'], lost: [] },
    { order: 'acquire leads release mutationsEnd released threadDies', settled: ['acquire', 'release'], lost: [] },
    // What it had said before it died is told once.
    { order: 'acquire leads ended threadDies release mutationsEnd', settled: ['acquire', 'release'], lost: [DIED] },
    {
      order: 'acquire leads ended lost threadDies release mutationsEnd',
      settled: ['acquire', 'release'],
      lost: ['a thief'],
    },
    {
      order: 'acquire leads ended lost release threadDies mutationsEnd',
      settled: ['acquire', 'release'],
      lost: ['a thief'],
    },
    {
      order: 'acquire leads ended lost release mutationsEnd threadDies',
      settled: ['acquire', 'release'],
      lost: ['a thief'],
    },
    // What it had said arrives after the news of its death.
    { order: 'acquire threadDies leads release mutationsEnd', settled: ['acquire: given up', 'release'], lost: [DIED] },
    {
      order: 'acquire leads threadDies ended lost release mutationsEnd',
      settled: ['acquire', 'release'],
      lost: [DIED],
    },
  ])('$order', async ({ order, settled, lost }) => {
    const started = start();

    for (const event of order.split(' ')) {
      started.events[event as keyof typeof started.events](); // by the table
      await setImmediate();
    }

    expect(started.settled).toEqual(settled);
    expect(started.lost).toEqual(lost);
    expect(started.fence.closed).toBe(1);
    expect(started.elector.isLeading).toBe(false);
    expect(started.elector.ended).toBeDefined();
  });
});

describe('raising the token', () => {
  const raised = (above: bigint, why?: string): ElectorReport => ({ kind: 'raised', name: NAME, above, why });

  test('is asked of the thread once for all who want it above the same one, and answered as the thread says', async () => {
    const { elector, events, orders } = start();
    events.acquire();
    events.leads();

    const some = [5n, 5n, 6n].map((token) => elector.raiseAbove(token));
    elector.onMessage(raised(6n, 'busy'));
    elector.onMessage(raised(5n));

    expect(await Promise.all(some)).toEqual([undefined, undefined, 'busy']);
    expect(orders).toEqual(['acquire', 'raise', 'raise']);
    void elector.raiseAbove(5n);
    expect(orders).toHaveLength(4);
  });

  test.each([
    { what: 'before it leads', order: ['acquire'] as const, why: 'the Lease is not held' },
    { what: 'after it led', order: ['acquire', 'leads', 'ended'] as const, why: 'lost leadership: a thief' },
    { what: 'when the thread has died', order: ['acquire', 'leads', 'threadDies'] as const, why: /it died/ },
  ])('is not asked of the thread $what', async ({ order, why }) => {
    const { elector, events, orders } = start();
    for (const event of order) events[event]();

    expect(await elector.raiseAbove(5n)).toMatch(why);
    expect(orders).not.toContain('raise');
  });

  test('ends when the thread dies', async () => {
    const { elector, events } = start();
    events.acquire();
    events.leads();

    const raise = elector.raiseAbove(5n);
    events.threadDies();

    expect(await raise).toBe('lost leadership: it died');
  });
});

test('mutations end before the thread is told to release', async () => {
  const { events, orders } = start();
  events.acquire();
  events.leads();

  events.release();
  await setImmediate();
  const before = [...orders];
  events.mutationsEnd();
  await setImmediate();

  expect(before).toEqual(['acquire']);
  expect(orders).toEqual(['acquire', 'release']);
});
