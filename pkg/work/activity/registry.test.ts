import { describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { activityMetrics } from '../../base/metrics/activity.ts';
import type { ActivityOwner } from './activity.ts';
import { ActivityRegistry } from './registry.ts';

const limits = { create: 2, initialize: 1, status: 1, delete: 1, drain: 1 };
const account = undefined;
const owner: ActivityOwner = { uid: 'uid-1', key: 'ns/m-1', account };
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function start() {
  const clock = new FakeClock();
  const registry = new Registry();
  const enqueued: string[] = [];
  const activities = new ActivityRegistry({
    clock,
    log: silentLogger,
    metrics: activityMetrics(registry),
    limits,
  });
  activities.onEnd((key) => enqueued.push(key));
  return { clock, registry, enqueued, activities };
}

/** Work that ends when told, and knows how often it was started and whether it was aborted. */
function work() {
  const calls: AbortSignal[] = [];
  const ends: { resolve: (value: string) => void; reject: (err: Error) => void }[] = [];
  const run = (signal: AbortSignal): Promise<string> => {
    calls.push(signal);
    return new Promise((resolve, reject) => ends.push({ resolve, reject }));
  };
  return {
    run,
    calls,
    done: (value: string) => ends.shift()?.resolve(value),
    fail: (err: Error) => ends.shift()?.reject(err),
  };
}

describe('an activity', () => {
  test('is started once, however often it is asked for', async () => {
    const { activities } = start();
    const { run, calls } = work();

    const first = activities.startOrGet(owner, 'create', run);
    await turn();
    const second = activities.startOrGet(owner, 'create', run);
    await turn();

    expect(calls).toHaveLength(1);
    expect(first).toEqual({ state: 'running', sinceMs: 0 });
    expect(second).toEqual(first);
  });

  test('does not begin before the pass that asked for it goes on', () => {
    const { activities } = start();
    const { run, calls } = work();

    activities.startOrGet(owner, 'create', run);

    expect(calls).toHaveLength(0);
  });

  test('enqueues its owner when it is done, and keeps its result until it is forgotten', async () => {
    const { activities, enqueued, clock } = start();
    const { run, calls, done } = work();
    activities.startOrGet(owner, 'create', run);
    await turn();
    clock.advance(700);

    done('vm-1');
    await turn();
    const seen = [activities.get(owner.uid, 'create'), activities.startOrGet(owner, 'create', run)];
    activities.forget(owner.uid, 'create');

    expect(enqueued).toEqual(['ns/m-1']);
    expect(seen).toEqual([
      { state: 'done', result: 'vm-1', settledAtMs: 700 },
      { state: 'done', result: 'vm-1', settledAtMs: 700 },
    ]);
    expect(activities.get(owner.uid, 'create')).toBeUndefined();
    expect(calls).toHaveLength(1);
  });

  test('keeps its failure too, and can be started anew once that was taken', async () => {
    const { activities, enqueued } = start();
    const { run, calls, fail } = work();
    const err = new Error('quota');
    activities.startOrGet(owner, 'create', run);
    await turn();

    fail(err);
    await turn();
    const seen = activities.get(owner.uid, 'create');
    activities.forget(owner.uid, 'create');
    activities.startOrGet(owner, 'create', run);
    await turn();

    expect(seen).toMatchObject({ state: 'failed', error: err });
    expect(enqueued).toEqual(['ns/m-1']);
    expect(calls).toHaveLength(2);
  });

  test('may enqueue its owner while it runs, and not afterwards', async () => {
    const { activities, enqueued } = start();
    const told: (() => void)[] = [];
    const { run, done } = work();
    activities.startOrGet(owner, 'drain', (signal, tell) => {
      told.push(tell);
      return run(signal);
    });
    await turn();

    told[0]?.();
    const whileRunning = [...enqueued];
    done('drained');
    await turn();
    told[0]?.();

    expect(whileRunning).toEqual(['ns/m-1']);
    expect(enqueued).toEqual(['ns/m-1', 'ns/m-1']);
  });

  test('that throws before it returns a promise has failed', async () => {
    const { activities } = start();

    activities.startOrGet(owner, 'create', () => {
      throw new Error('at once');
    });
    await turn();

    expect(activities.get(owner.uid, 'create')).toMatchObject({ state: 'failed' });
  });

  test('is not forgotten while it runs', async () => {
    const { activities } = start();
    activities.startOrGet(owner, 'create', work().run);
    await turn();

    activities.forget(owner.uid, 'create');

    expect(activities.get(owner.uid, 'create')).toMatchObject({ state: 'running' });
  });

  test('kinds and owners are apart: a re-created object is a stranger', async () => {
    const { activities } = start();
    const { run, calls } = work();

    activities.startOrGet(owner, 'create', run);
    activities.startOrGet(owner, 'drain', run);
    activities.startOrGet({ uid: 'uid-2', key: owner.key, account }, 'create', run);
    await turn();

    expect(calls).toHaveLength(3);
  });
});

describe('aborting', () => {
  test('running work counts as running until it has ended', async () => {
    const { activities, enqueued } = start();
    const { run, calls, fail } = work();
    activities.startOrGet(owner, 'drain', run);
    await turn();

    activities.abort(owner.uid, 'drain', 'machine is deleted');
    await turn();
    const before = activities.get(owner.uid, 'drain');
    fail(new Error('stopped'));
    await turn();

    expect(calls[0]?.aborted).toBe(true);
    expect(before).toMatchObject({ state: 'running' });
    expect(activities.get(owner.uid, 'drain')).toMatchObject({ state: 'failed' });
    expect(enqueued).toEqual(['ns/m-1']);
  });

  test('work that succeeds all the same is done', async () => {
    const { activities } = start();
    const { run, done } = work();
    activities.startOrGet(owner, 'create', run);
    await turn();

    activities.abort(owner.uid, 'create', 'machine is deleted');
    done('vm-1');
    await turn();

    expect(activities.get(owner.uid, 'create')).toMatchObject({ state: 'done', result: 'vm-1' });
  });

  test('work that still waits for its turn ends at once and is never started', async () => {
    const { activities, enqueued } = start();
    const { run, calls, done } = work();
    activities.startOrGet({ uid: 'other', key: 'ns/other', account }, 'drain', run);
    activities.startOrGet(owner, 'drain', run);
    await turn();

    activities.abort(owner.uid, 'drain', 'machine is deleted');
    const after = activities.get(owner.uid, 'drain');
    done('drained');
    await turn();

    expect(after).toMatchObject({ state: 'failed' });
    expect(enqueued).toEqual(['ns/m-1', 'ns/other']);
    expect(calls).toHaveLength(1);
  });
});

describe('limits', () => {
  test('hold per kind: drains never keep creations waiting', async () => {
    const { activities } = start();
    const drains = work();
    const creations = work();

    for (let i = 0; i < 5; i++) activities.startOrGet({ uid: `d${i}`, key: `ns/d${i}`, account }, 'drain', drains.run);
    for (let i = 0; i < 5; i++)
      activities.startOrGet({ uid: `c${i}`, key: `ns/c${i}`, account }, 'create', creations.run);
    await turn();
    const atFirst = [drains.calls.length, creations.calls.length];
    creations.done('vm');
    await turn();

    expect(atFirst).toEqual([1, 2]);
    expect(creations.calls).toHaveLength(3);
  });

  test('hold for each account apart: one that hangs keeps no other waiting', async () => {
    const { activities } = start();
    const hanging = work();
    const other = work();

    for (const uid of ['a1', 'a2', 'a3']) activities.startOrGet({ uid, key: uid, account: 'a' }, 'create', hanging.run);
    for (const uid of ['b1', 'b2', 'b3']) activities.startOrGet({ uid, key: uid, account: 'b' }, 'create', other.run);
    await turn();

    expect([hanging.calls.length, other.calls.length]).toEqual([2, 2]);
  });

  test('show in the metrics', async () => {
    const { activities, registry, clock } = start();
    const { run, fail } = work();
    for (const uid of ['a', 'b', 'c']) activities.startOrGet({ uid, key: uid, account }, 'create', run);
    await turn();
    clock.advance(3_000);
    const text = await registry.metrics();
    fail(new Error('x'));
    await turn();

    expect(text).toContain('machinist_activities_queued{kind="create"} 1');
    expect(text).toContain('machinist_activities_running{kind="create"} 2');
    expect(text).toContain('machinist_activity_oldest_seconds{kind="create"} 3');
    expect(await registry.metrics()).toContain('machinist_activities_total{kind="create",result="failed"} 1');
  });
});

test('work that has not ended is listed with its owner, and whether it waits for others', async () => {
  const { activities, clock } = start();
  const first = work();
  activities.startOrGet(owner, 'delete', first.run);
  await turn();
  clock.advance(1_000);
  activities.startOrGet({ ...owner, uid: 'u-2', key: 'ns/second' }, 'delete', work().run);
  await turn();
  const both = activities.open();

  first.done('x');
  await turn();
  await turn();

  expect(both).toEqual([
    { key: owner.key, kind: 'delete', sinceMs: 0, isQueued: false },
    { key: 'ns/second', kind: 'delete', sinceMs: 1_000, isQueued: true },
  ]);
  expect(activities.open()).toEqual([{ key: 'ns/second', kind: 'delete', sinceMs: 1_000, isQueued: false }]);
});

describe('a vanished object', () => {
  test('leaves nothing behind, neither settled nor running work', async () => {
    const { activities, enqueued } = start();
    const settled = work();
    const running = work();
    activities.startOrGet(owner, 'create', settled.run);
    activities.startOrGet(owner, 'delete', running.run);
    await turn();
    settled.done('vm-1');
    await turn();
    enqueued.length = 0;

    activities.forgetAll(owner.key);
    const create = activities.get(owner.uid, 'create');
    expect(running.calls[0]?.aborted).toBe(false); // a account that was asked to delete goes on
    running.done('gone');
    await turn();

    expect(create).toBeUndefined();
    expect(activities.get(owner.uid, 'delete')).toBeUndefined();
    expect(enqueued).toEqual([]);
  });

  test("is drained no further: its Node may be another one's by now", async () => {
    const { activities, enqueued } = start();
    const { run, calls, fail } = work();
    activities.startOrGet(owner, 'drain', run);
    await turn();

    activities.forgetAll(owner.key, 'uid-2');
    const wasAborted = calls[0]?.aborted;
    fail(new Error('aborted'));
    await turn();

    expect(wasAborted).toBe(true);
    expect(activities.get(owner.uid, 'drain')).toBeUndefined();
    expect(enqueued).toEqual([]);
  });

  test('that is shown again is told of the end of its work: it was only out of sight', async () => {
    const { activities, enqueued } = start();
    const { run, done } = work();
    activities.startOrGet(owner, 'create', run);
    await turn();
    enqueued.length = 0;
    activities.forgetAll(owner.key);

    const seen = activities.get(owner.uid, 'create');
    done('vm-1');
    await turn();

    expect(seen?.state).toBe('running');
    expect([enqueued, activities.get(owner.uid, 'create')]).toEqual([
      [owner.key],
      expect.objectContaining({ state: 'done', result: 'vm-1' }),
    ]);
  });

  test('that is shown again is told of the end of a creation that was broken off before: it may have made a VM', async () => {
    const { activities } = start();
    const { run, done } = work();
    activities.startOrGet(owner, 'create', run);
    await turn();
    activities.abort(owner.uid, 'create', 'the machine is being deleted');
    activities.forgetAll(owner.key);

    activities.get(owner.uid, 'create');
    done('vm-1');
    await turn();

    expect(activities.get(owner.uid, 'create')).toMatchObject({ state: 'done', result: 'vm-1' });
  });

  test('that is shown again is drained anew once the drain that was broken off has ended', async () => {
    const { activities, enqueued } = start();
    const { run, fail } = work();
    activities.startOrGet(owner, 'drain', run);
    await turn();
    activities.forgetAll(owner.key);

    const seen = activities.get(owner.uid, 'drain');
    fail(new Error('aborted'));
    await turn();

    expect(seen?.state).toBe('running');
    expect([enqueued, activities.get(owner.uid, 'drain')]).toEqual([[owner.key], undefined]);
  });

  test('does not take the work of its successor with it', async () => {
    const { activities } = start();
    const successor = { uid: 'uid-2', key: owner.key, account };
    activities.startOrGet(successor, 'create', () => Promise.resolve('vm-2'));
    await turn();

    activities.forgetAll(owner.key, 'uid-2');

    expect(activities.get('uid-2', 'create')).toMatchObject({ state: 'done' });
  });
});

describe('stopping', () => {
  test('starts nothing new, gives running work its grace, aborts it, and waits for its end', async () => {
    const { activities, clock } = start();
    const { run, calls } = work();
    const ended: number[] = [];
    activities.startOrGet(owner, 'delete', async (signal) => {
      await clock.sleep(1e9, signal).catch(() => undefined);
      await clock.sleep(500, new AbortController().signal);
      ended.push(clock.monotonicMs());
    });
    activities.startOrGet({ uid: 'queued', key: 'ns/queued', account }, 'delete', run);
    await turn();
    const stopping = activities.stop(20_000);

    const late = activities.startOrGet({ uid: 'late', key: 'ns/late', account }, 'create', run);
    await clock.advanceAsync(21_000);
    await stopping;

    expect(ended).toEqual([20_500]);
    expect(late).toMatchObject({ state: 'running' });
    expect(calls).toHaveLength(0);
  });

  test('breaks off drains at once: whoever comes next takes them up where they stand', async () => {
    const { activities, clock } = start();
    activities.startOrGet(owner, 'drain', (signal) => clock.sleep(1e9, signal));
    await turn();

    await expect(activities.stop(20_000)).resolves.toBeUndefined();

    expect(clock.monotonicMs()).toBe(0);
  });

  test('leaves results of work that ended by itself, until they are taken', async () => {
    const { activities, clock } = start();
    activities.startOrGet(owner, 'delete', () => clock.sleep(1_000, new AbortController().signal));
    activities.startOrGet({ uid: 'd', key: 'ns/d', account }, 'drain', (signal) => clock.sleep(1e9, signal));
    await turn();
    const stopping = activities.stop(20_000);
    const before = activities.hasResult(owner.key);
    await clock.advanceAsync(1_000);
    await stopping;

    expect([before, activities.hasResult(owner.key), activities.hasResult('ns/d')]).toEqual([false, true, false]);
    activities.forget(owner.uid, 'delete');
    expect(activities.hasResult(owner.key)).toBe(false);
  });

  test('ends at once when nothing runs', async () => {
    const { activities } = start();

    await expect(activities.stop(20_000)).resolves.toBeUndefined();
  });
});
