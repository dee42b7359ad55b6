import { expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../test/builders.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { DriverError } from '../../driver/error.ts';
import type { DrainRecord } from './drain/plan.ts';
import { workInProgress, type WorkSource } from './work-in-progress.ts';

const { uid } = machine().metadata;
const { uid: classUID } = machineClass().metadata;
const NO_ROOM = new DriverError('ResourceExhausted', 'no room');

/** At 00:01:00, when the process has run for a minute; changed where the test says. */
function shown(change: {
  readonly held?: ReturnType<WorkSource['steps']['retries']['held']>;
  readonly classes?: ReturnType<WorkSource['steps']['retries']['heldClasses']>;
  readonly drains?: readonly (readonly [uid: string, record: Partial<DrainRecord>])[];
  readonly open?: ReturnType<WorkSource['activities']['open']>;
  readonly failure?: ReturnType<WorkSource['steps']['timeToFailure']>;
}) {
  const clock = new FakeClock();
  const startedMs = clock.monotonicMs();
  clock.advance(60_000);
  const atMs = (seconds: number): number => startedMs + seconds * 1_000;
  const { held = [], classes = [], drains = [], open = [] } = change;
  const records = drains.map(([key, { startedMs: at = 0, ...record }]) => {
    const made = {
      owner: { uid: key, key, account: undefined },
      purpose: 'deletion',
      force: undefined,
      forceRule: 'usual',
      isSuperseded: false,
      nodeUID: 'uid-of-node',
      failures: 0,
    } as const;
    return [key, { ...made, progress: undefined, startedMs: atMs(at), ...record }] as const;
  });
  const dated = <T extends { readonly notBeforeMs: number }>(one: T): T => ({
    ...one,
    notBeforeMs: atMs(one.notBeforeMs),
  });
  return workInProgress({
    steps: {
      drains: { blocked: () => [], open: () => new Map(records) },
      retries: {
        held: () => held.map((one) => ({ ...dated(one), sinceMs: atMs(one.sinceMs) })),
        heldClasses: () => classes.map(dated),
        isExhausted: () => false,
      },
      timeToFailure: () => change.failure,
    },
    activities: { open: () => open.map((one) => ({ ...one, sinceMs: atMs(one.sinceMs) })) },
    machines: { list: () => [machine()] },
    classes: { list: () => [machineClass()] },
    clock,
    nodesOf: () => undefined,
  });
}

test('shows when Machines become Failed', () => {
  expect(shown({}).deadlines).toEqual([]);
  expect(shown({ failure: { timeout: 'health', leftMs: 90_000 } }).deadlines).toEqual([
    { machine: 'default/m-1', timeout: 'health', failsAt: '2026-01-01T00:02:30Z' },
  ]);
});

test('shows which calls run, and which wait for others', () => {
  const { activities } = shown({
    open: [
      { key: 'default/m-1', kind: 'create', sinceMs: 48, isQueued: false },
      { key: 'default/m-2', kind: 'drain', sinceMs: 50, isQueued: true },
    ],
  });

  expect(activities).toEqual([
    { machine: 'default/m-1', activity: 'create', since: '2026-01-01T00:00:48Z', isQueued: false },
    { machine: 'default/m-2', activity: 'drain', since: '2026-01-01T00:00:50Z', isQueued: true },
  ]);
});

test('shows failed calls with their next attempt; none of a Machine that is gone', () => {
  const held = { call: 'create', classUID, failures: 4, error: NO_ROOM, sinceMs: 5, notBeforeMs: 100 } as const;

  const { retries } = shown({
    held: [
      { ...held, machineUID: uid },
      { ...held, machineUID: 'gone' },
      { ...held, machineUID: uid, call: 'delete', error: undefined },
    ],
  });

  const common = {
    machine: 'default/m-1',
    failures: 4,
    since: '2026-01-01T00:00:05Z',
    nextAttempt: '2026-01-01T00:01:40Z',
  };
  expect(retries).toEqual([
    { ...common, call: 'create', code: 'ResourceExhausted', message: 'no room' },
    { ...common, call: 'delete' },
  ]);
});

test('shows classes that are out of something, until when; none that is gone', () => {
  const held = { failures: 2, error: NO_ROOM, notBeforeMs: 90 };

  const { exhausted } = shown({
    classes: [
      { ...held, classUID },
      { ...held, classUID: 'gone' },
    ],
  });

  expect(exhausted).toEqual([
    { machineClass: 'default/class-1', message: 'no room', failures: 2, nextAttempt: '2026-01-01T00:01:30Z' },
  ]);
});

test.each<{ what: string; record: Partial<DrainRecord>; want: object }>([
  { what: 'that has just begun', record: {}, want: { isBlocked: false } },
  {
    what: 'that a budget blocks',
    record: {
      progress: { remainingPods: 1, blocked: [{ pod: 'ns/a', reason: 'disruption-budget', detail: 'x' }] },
      forceAtMs: Date.UTC(2026, 0, 1, 2),
    },
    want: {
      isBlocked: true,
      remainingPods: 1,
      message: 'Waiting for 1 pod: ns/a (PodDisruptionBudget x currently allows no eviction).',
      podsDeletedAt: '2026-01-01T02:00:00Z',
    },
  },
  {
    what: 'that is forced, and is tried again',
    record: { purpose: 'maintenance', force: 'timeout', forceAtMs: 1, startedMs: 30 },
    want: { isBlocked: false, purpose: 'maintenance', since: '2026-01-01T00:00:30Z', forcedBy: 'timeout' },
  },
])('shows a drain $what', ({ record, want }) => {
  const { drains } = shown({
    drains: [
      [uid, record],
      ['gone', record],
    ],
  });

  expect(drains).toEqual([
    { machine: 'default/m-1', purpose: 'deletion', since: '2026-01-01T00:00:00Z', failures: 0, ...want },
  ]);
});
