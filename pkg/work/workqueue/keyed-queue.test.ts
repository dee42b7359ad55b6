import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { Registry } from 'prom-client';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { queueMetrics } from '../../base/metrics/queue.ts';
import { Backoff, type BackoffOptions } from './backoff.ts';
import { KeyedQueue, type KeyedQueueDeps, type Outcome, type Run } from './keyed-queue.ts';

const done: Outcome = { kind: 'done' };

/** A queue whose work is done at once unless told otherwise. `runs` are the keys in the order in which they started. */
function queueOf(
  work: (key: string, run: Run) => Promise<Outcome> = async () => done,
  concurrency = 1,
  spread: Pick<BackoffOptions, 'jitter' | 'random'> = { jitter: 0 },
  more: Partial<Pick<KeyedQueueDeps, 'restMs' | 'groupOf' | 'mostOfGroup'>> = {},
) {
  const clock = new FakeClock();
  const registry = new Registry();
  const runs: string[] = [];
  const queue = new KeyedQueue({
    name: 'machine',
    concurrency,
    clock,
    backoff: new Backoff({ baseMs: 100, maxMs: 10_000, ...spread }),
    metrics: queueMetrics(registry),
    ...more,
    work: (key, run) => {
      runs.push(key);
      return work(key, run);
    },
  });
  return { queue, clock, registry, runs };
}

/** Work that goes on until it is told how to end. */
function heldWork() {
  const ends: ((outcome: Outcome) => void)[] = [];
  const work = (): Promise<Outcome> => new Promise((resolve) => ends.push(resolve));
  return { work, end: (outcome: Outcome = done) => ends.shift()?.(outcome) };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 10_000 && !condition(); i++) await turn();
  expect(condition()).toBe(true);
}

const isIdle = (queue: KeyedQueue) => (): boolean => queue.state.depth === 0 && queue.state.runningMs.length === 0;

describe('adding', () => {
  test('a key added many times while it waits runs once', async () => {
    const { queue, runs } = queueOf();

    for (let i = 0; i < 5; i++) queue.add('a');
    await until(isIdle(queue));

    expect(runs).toEqual(['a']);
  });

  test('never starts work before the caller has ended', async () => {
    const { queue, runs } = queueOf();

    queue.add('a');

    expect(runs).toEqual([]);
    await until(isIdle(queue));
    expect(runs).toEqual(['a']);
  });

  test('a key added while it runs runs once more afterwards, never twice at once', async () => {
    const { work, end } = heldWork();
    const { queue, runs } = queueOf(work, 4);
    queue.add('a');
    await until(() => runs.length === 1);

    queue.add('a');
    queue.add('a');
    queue.add('b');
    await until(() => runs.length === 2);
    const whileRunning = [...runs];
    end();
    await until(() => runs.length === 3);

    expect(whileRunning).toEqual(['a', 'b']);
    expect(runs).toEqual(['a', 'b', 'a']);
  });

  test('a key that became urgent while it waited, and is added again while it runs, does not run twice at once', async () => {
    const { work, end } = heldWork();
    const { queue, runs } = queueOf(work, 2);
    queue.add('blocker');
    queue.add('other');
    await until(() => runs.length === 2);
    queue.add('a', 'low');
    queue.add('a', 'high');
    end(); // the blocker's
    await until(() => runs.length === 3);

    queue.add('a');
    end(); // the other's
    for (let i = 0; i < 20; i++) await turn();

    expect(runs).toEqual(['blocker', 'other', 'a']);
    end();
    await until(() => runs.length === 4);
  });

  test('runs no more keys at once than it has workers', async () => {
    const { work, end } = heldWork();
    const { queue, runs } = queueOf(work, 2);

    for (const key of ['a', 'b', 'c']) queue.add(key);
    await until(() => runs.length === 2);
    await turn();
    const atFirst = [...runs];
    end();
    await until(() => runs.length === 3);

    expect(atFirst).toEqual(['a', 'b']);
  });
});

describe('priorities', () => {
  test('highest goes before high, high before normal, normal before low, each in order of arrival', async () => {
    const { queue, runs } = queueOf();
    queue.add('first');
    await until(() => runs.length === 1);

    queue.add('blocker');
    queue.add('low1', 'low');
    queue.add('normal1');
    queue.add('high1', 'high');
    queue.add('highest', 'highest');
    queue.add('low2', 'low');
    queue.add('normal2');
    queue.add('high2', 'high');
    await until(isIdle(queue));

    expect(runs).toEqual(['first', 'blocker', 'highest', 'high1', 'high2', 'normal1', 'normal2', 'low1', 'low2']);
  });

  test('a waiting key that becomes urgent goes first, and still runs once', async () => {
    const { queue, runs } = queueOf();

    queue.add('blocker');
    for (const key of ['a', 'b', 'c']) queue.add(key, 'low');
    queue.add('c', 'high');
    queue.add('c', 'normal');
    await until(isIdle(queue));

    expect(runs).toEqual(['blocker', 'c', 'a', 'b']);
  });

  test.each(['high', 'highest'] as const)('a retried deletion stays urgent: %s', async (priority) => {
    let failed = false;
    const { queue, runs, clock } = queueOf(async (key) => {
      if (key !== 'deletion' || failed) return done;
      failed = true;
      return { kind: 'retry' };
    });
    queue.add('deletion', priority);
    await until(isIdle(queue));

    queue.add('blocker');
    queue.add('other', priority === 'highest' ? 'high' : 'normal');
    clock.advance(100);
    await until(isIdle(queue));

    expect(runs).toEqual(['deletion', 'blocker', 'deletion', 'other']);
  });
});

test('two thousand keys of one group that wait delay the only key of another by one run', async () => {
  const { queue, runs } = queueOf(undefined, 1, undefined, { groupOf: (key) => key.charAt(0) });

  for (let i = 0; i < 2_000; i++) queue.add(`a${i}`);
  queue.add('b');
  await until(isIdle(queue));

  // The first one was with its worker before the other came.
  expect(runs.indexOf('b')).toBeLessThanOrEqual(2);
  expect(runs).toHaveLength(2_001);
});

test('a group whose runs hang leaves another one its places, and gets its own back one by one', async () => {
  const { work, end } = heldWork();
  const isHeld = (key: string): boolean => key.startsWith('a');
  const { queue, runs } = queueOf(async (key) => (isHeld(key) ? await work() : done), 4, undefined, {
    groupOf: (key) => key.charAt(0),
    mostOfGroup: 2,
  });

  for (let i = 0; i < 10; i++) queue.add(`a${i}`);
  for (let i = 0; i < 10; i++) queue.add(`b${i}`);
  await until(() => runs.filter((key) => !isHeld(key)).length === 10);
  expect(runs.filter(isHeld)).toEqual(['a0', 'a1']);

  for (let i = 0; i < 10; i++) {
    await until(() => runs.filter(isHeld).length === Math.min(i + 2, 10));
    end();
  }
  await until(isIdle(queue));
  expect(runs).toHaveLength(20);
});

describe('delays', () => {
  test('the soonest of several wins', async () => {
    const { queue, runs, clock } = queueOf();

    queue.addAfter('a', 500);
    queue.addAfter('a', 100);
    queue.addAfter('a', 900);
    await clock.advanceAsync(99);
    const early = [...runs];
    await clock.advanceAsync(1);
    await until(isIdle(queue));
    expect([early, runs]).toEqual([[], ['a']]);
    await clock.advanceAsync(5_000);

    expect(runs).toEqual(['a']);
  });

  test('a delay survives an earlier run of the key', async () => {
    const { queue, runs, clock } = queueOf();

    queue.addAfter('a', 500);
    queue.add('a');
    await until(isIdle(queue));
    await clock.advanceAsync(500);
    await until(isIdle(queue));

    expect(runs).toEqual(['a', 'a']);
  });

  test('work that asks to be run again is', async () => {
    let again = true;
    const { queue, runs, clock } = queueOf(async () => {
      const outcome: Outcome = again ? { kind: 'again', afterMs: 300 } : done;
      again = false;
      return outcome;
    });

    queue.add('a');
    await clock.advanceAsync(299);
    const early = runs.length;
    await clock.advanceAsync(1);

    expect(early).toBe(1);
    expect(runs).toEqual(['a', 'a']);
  });
});

test('work that asks to be run again is a little late, so that it keeps step with nothing', async () => {
  let again = true;
  const { queue, runs, clock } = queueOf(
    async () => {
      const outcome: Outcome = again ? { kind: 'again', afterMs: 5_000 } : done;
      again = false;
      return outcome;
    },
    1,
    { jitter: 0.2, random: () => 0.5 },
  );

  queue.add('a');
  await clock.advanceAsync(5_249);
  const early = runs.length;
  await clock.advanceAsync(1);

  expect([early, runs.length]).toEqual([1, 2]);
});

describe('a key that rests after a run', () => {
  const resting = (ends: readonly Outcome[] = []) => {
    const outcomes = [...ends];
    return queueOf(async () => outcomes.shift() ?? done, 1, undefined, {
      restMs: (key) => (key === 'large' ? 100 : 0),
    });
  };

  test('runs once for a thousand changes, when the rest is over; others do not wait for it', async () => {
    const { queue, clock, runs } = resting();
    queue.add('large');
    await until(isIdle(queue));

    for (let i = 0; i < 1_000; i++) queue.add('large', i % 2 === 0 ? 'normal' : 'high');
    queue.add('small');
    queue.add('small');
    await clock.advanceAsync(99);
    await until(() => runs.includes('small'));
    expect(runs).toEqual(['large', 'small']);
    await clock.advanceAsync(1);
    await until(isIdle(queue));

    expect(runs).toEqual(['large', 'small', 'large']);
  });

  test('runs at once when nothing has run it for so long', async () => {
    const { queue, clock, runs } = resting();
    queue.add('large');
    await until(isIdle(queue));
    await clock.advanceAsync(100);

    queue.add('large');
    await until(isIdle(queue));

    expect(runs).toEqual(['large', 'large']);
  });

  test('runs at once when its run asks for that, and not before its rest is over when it asks for later', async () => {
    const { queue, clock, runs } = resting([
      { kind: 'again', afterMs: 0 },
      { kind: 'again', afterMs: 10 },
    ]);
    queue.add('large');
    await until(() => runs.length === 2);
    await until(isIdle(queue));

    await clock.advanceAsync(99);
    expect(runs).toHaveLength(2);
    await clock.advanceAsync(1);
    await until(isIdle(queue));

    expect(runs).toHaveLength(3);
  });

  test('does not run after the end of the queue', async () => {
    const { queue, clock, runs } = resting();
    queue.add('large');
    await until(isIdle(queue));
    queue.add('large');

    await queue.stop(1_000);
    await clock.advanceAsync(1_000);

    expect(runs).toEqual(['large']);
  });
});

describe('failures', () => {
  test('back off per key, growing, and are forgotten after a success', async () => {
    let fail = true;
    const { queue, runs, clock } = queueOf(async () => (fail ? { kind: 'retry' } : done));
    queue.add('a');
    await clock.advanceAsync(0);
    const at: number[] = [];
    for (let ms = 0; ms < 1_500; ms += 100) {
      const before = runs.length;
      await clock.advanceAsync(100);
      if (runs.length > before) at.push(clock.monotonicMs());
    }
    const failures = queue.failuresOf('a');
    fail = false;
    await clock.advanceAsync(10_000);

    expect(at).toEqual([100, 300, 700, 1_500]);
    expect(failures).toBe(5);
    expect(queue.failuresOf('a')).toBe(0);
  });

  test('a retry may be capped by the work, and an `again` may keep the count', async () => {
    const outcomes: Outcome[] = [
      { kind: 'retry' },
      { kind: 'retry', maxMs: 10 },
      { kind: 'again', afterMs: 10, keepFailures: true },
      done,
    ];
    const seen: number[] = [];
    const { queue, clock } = queueOf(async (_key, { failures }) => {
      seen.push(failures);
      return outcomes.shift() ?? done;
    });

    queue.add('a');
    await clock.advanceAsync(100 + 10 + 10);

    expect(seen).toEqual([0, 1, 2, 2]);
  });

  test('work that throws is retried', async () => {
    let thrown = false;
    const { queue, runs, clock } = queueOf(async () => {
      if (thrown) return done;
      thrown = true;
      throw new Error('boom');
    });

    queue.add('a');
    await clock.advanceAsync(100);

    expect(runs).toEqual(['a', 'a']);
  });
});

describe('stopping', () => {
  test('starts nothing more, and waits for what runs', async () => {
    const { work, end } = heldWork();
    const { queue, runs, clock } = queueOf(work);
    queue.add('running');
    queue.addAfter('later', 10);
    await until(() => runs.length === 1);
    queue.add('waiting');
    let stopped = false;
    const stopping = (async () => {
      await queue.stop(20_000);
      stopped = true;
    })();

    queue.add('too-late');
    await clock.advanceAsync(1_000);
    const before = stopped;
    end({ kind: 'again', afterMs: 0 });
    await stopping;
    await clock.advanceAsync(60_000);

    expect(before).toBe(false);
    expect(runs).toEqual(['running']);
  });

  test('aborts what runs when the grace is over, and still waits for its end', async () => {
    const ends: number[] = [];
    const { queue, runs, clock } = queueOf(async (_key, { signal }) => {
      await clock.sleep(1e9, signal).catch(() => undefined);
      await clock.sleep(500, new AbortController().signal); // tidying up
      ends.push(clock.monotonicMs());
      return done;
    });
    queue.add('a');
    await until(() => runs.length === 1);
    const stopping = queue.stop(20_000);

    await clock.advanceAsync(21_000);
    await stopping;

    expect(ends).toEqual([20_500]);
  });

  test('ends at once when nothing runs, also with keys in the pool', async () => {
    const { queue, runs } = queueOf();
    queue.add('a');

    await queue.stop(1_000);
    for (let i = 0; i < 5; i++) await turn();

    expect(runs).toEqual([]);
  });
});

describe('a queue that takes only some keys any more', () => {
  test('forgets the others, works on these until nothing of them is left, and then rests', async () => {
    const { work, end } = heldWork();
    const { queue, runs, clock } = queueOf(work);
    queue.add('other');
    queue.addAfter('wanted', 10);
    queue.addAfter('another', 10);
    queue.restrict((key) => key === 'wanted');
    queue.add('third');
    let rested = false;
    const resting = (async () => {
      await queue.rest(1_000);
      rested = true;
    })();

    await clock.advanceAsync(10);
    await until(() => runs.length === 1);
    const before = rested;
    end({ kind: 'done' });
    await resting;

    expect(before).toBe(false);
    expect(runs).toEqual(['wanted']);
    expect(clock.monotonicMs()).toBe(10);
  });

  test('rests when the time is over, whatever runs or comes back later', async () => {
    const { work, end } = heldWork();
    const { queue, runs, clock } = queueOf(work);
    queue.add('a');
    await until(() => runs.length === 1);
    const resting = queue.rest(1_000);

    await clock.advanceAsync(1_000);
    await resting;
    end({ kind: 'again', afterMs: 5_000 });
    await until(() => queue.state.runningMs.length === 0);

    await expect(queue.rest(1_000)).resolves.toBeUndefined();
  });
});

describe('metrics', () => {
  test('show depth, ages, adds, retries and durations under the original names', async () => {
    const { work, end } = heldWork();
    const { queue, runs, clock, registry } = queueOf(work);
    queue.add('a');
    await until(() => runs.length === 1);
    clock.advance(2_000);
    queue.add('b');
    queue.add('b');
    queue.addAfter('c', 60_000);
    clock.advance(1_000);

    const held = await registry.metrics();
    end();
    await until(() => runs.length === 2);
    const after = await registry.metrics();

    for (const line of [
      'mcm_workqueue_depth{name="machine"} 1',
      'machinist_workqueue_oldest_waiting_seconds{name="machine"} 1',
      'mcm_workqueue_unfinished_work_seconds{name="machine"} 3',
      'mcm_workqueue_longest_running_processor_seconds{name="machine"} 3',
      'mcm_workqueue_adds_total{name="machine"} 2',
      'mcm_workqueue_retries_total{name="machine"} 1',
    ]) {
      expect(held).toContain(line);
    }
    expect(after).toContain('mcm_workqueue_work_duration_seconds_sum{name="machine"} 3');
    expect(after).toContain('mcm_workqueue_queue_duration_seconds_sum{name="machine"} 1');
    expect(after).toContain('mcm_workqueue_queue_duration_seconds_bucket{le="1e-8",name="machine"} 1');
  });
});

describe('properties', () => {
  test('whatever is added and however it ends, no key runs twice at once and none is lost', async () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd');
    const step = fc.oneof(
      fc.record({ do: fc.constant('add' as const), key, priority: fc.constantFrom('high', 'normal', 'low') }),
      fc.record({ do: fc.constant('later' as const), key, ms: fc.integer({ min: 0, max: 300 }) }),
      fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 200 }) }),
    );
    const ending = fc.constantFrom<Outcome>(done, { kind: 'retry' }, { kind: 'again', afterMs: 20 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 30, size: 'max' }),
        fc.array(ending, { maxLength: 10, size: 'max' }),
        fc.integer({ min: 1, max: 3 }),
        async (steps, endings, concurrency) => {
          const running = new Set<string>();
          const addedAt = new Map<string, number>();
          const startedAt = new Map<string, number>();
          let twice = false;
          let order = 0;
          const { queue, clock } = queueOf(async (k) => {
            twice ||= running.has(k);
            running.add(k);
            startedAt.set(k, ++order);
            await turn();
            running.delete(k);
            return endings.pop() ?? done;
          }, concurrency);

          for (const s of steps) {
            if (s.do === 'pass') await clock.advanceAsync(s.ms);
            else {
              addedAt.set(s.key, ++order);
              if (s.do === 'add') queue.add(s.key, s.priority);
              else queue.addAfter(s.key, s.ms);
            }
          }
          await clock.advanceAsync(60_000);
          await until(isIdle(queue));

          expect(twice).toBe(false);
          for (const [k, at] of addedAt) {
            // A delayed add may be answered by an earlier timer's run only if that came after it.
            expect(startedAt.get(k)).toBeGreaterThan(at);
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  test('a backlog of 20,000 keys, raised in priority, is cheap', async () => {
    const { queue, runs } = queueOf(async () => done, 50);
    const startedAt = performance.now();

    for (let i = 0; i < 20_000; i++) queue.add(`key-${i}`, 'low');
    for (let i = 0; i < 20_000; i += 10) queue.add(`key-${i}`, 'high');
    await queueIdle(queue);

    expect(runs).toHaveLength(20_000);
    expect(new Set(runs).size).toBe(20_000);
    // About 0.2 s here; a search for each key would take minutes.
    expect(performance.now() - startedAt).toBeLessThan(50_000);
  });
});

async function queueIdle(queue: KeyedQueue): Promise<void> {
  while (!isIdle(queue)()) await turn();
}
