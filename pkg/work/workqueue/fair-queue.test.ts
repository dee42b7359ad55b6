import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { FairQueue, type FairOptions } from './fair-queue.ts';

/** A job that says who it is. */
interface Named extends FairOptions {
  readonly name: string;
}

async function orderOf(jobs: readonly Named[]): Promise<unknown[]> {
  const queue = new FairQueue();
  for (const { name, ...options } of jobs) queue.enqueue(() => Promise.resolve(name), options);
  const order: unknown[] = [];
  for (let job = queue.dequeue(); job !== undefined; job = queue.dequeue()) order.push(await job());
  expect(queue.size).toBe(0);
  return order;
}

describe('jobs start', () => {
  test('in the order in which they came, within a group', async () => {
    const jobs = ['1', '2', '3', '4', '5'].map((name) => ({ name, group: 'a' }));

    expect(await orderOf(jobs)).toEqual(['1', '2', '3', '4', '5']);
  });

  test('in turns, one of each group', async () => {
    const jobs = [
      ...['a1', 'a2', 'a3', 'a4'].map((name) => ({ name, group: 'a' })),
      ...['b1', 'b2'].map((name) => ({ name, group: 'b' })),
      { name: 'none' },
    ];

    expect(await orderOf(jobs)).toEqual(['a1', 'b1', 'none', 'a2', 'b2', 'a3', 'a4']);
  });

  test('by priority within a group, which takes no turn of another one', async () => {
    const jobs = [
      { name: 'low', priority: 1, group: 'a' },
      { name: 'normal', priority: 2, group: 'a' },
      { name: 'other', priority: 2, group: 'b' },
      { name: 'high', priority: 4, group: 'a' },
    ];

    expect(await orderOf(jobs)).toEqual(['high', 'other', 'normal', 'low']);
  });
});

test.each([
  { what: 'came before', priority: 2 },
  { what: 'are more urgent', priority: 4 },
])('the only job of a group waits for one of another group, although two thousand of those $what', async (row) => {
  const jobs = Array.from({ length: 2_000 }, (_, i) => ({ name: `a${i}`, group: 'a', priority: row.priority }));

  const order = await orderOf([...jobs, { name: 'b', group: 'b', priority: 2 }]);

  expect(order.indexOf('b')).toBe(1);
  expect(order).toHaveLength(2_001);
});

test('whatever comes and goes, nothing is lost, and jobs of one group and priority keep their order', () => {
  const step = fc.oneof(
    fc.record({ priority: fc.constantFrom(1, 2, 4), group: fc.constantFrom('a', 'b', 'c') }),
    fc.constant('dequeue' as const),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const queue = new FairQueue();
      const names = new Map<unknown, { readonly lane: string; readonly at: number }>();
      const [left, seen] = [new Set<unknown>(), new Map<string, number>()];
      const take = (): void => {
        const job = queue.dequeue();
        expect(job !== undefined).toBe(left.size > 0);
        if (job === undefined) return;
        expect(left.delete(job)).toBe(true);
        const { lane, at } = names.get(job) ?? { lane: '', at: -1 };
        expect(at).toBeGreaterThan(seen.get(lane) ?? -1);
        seen.set(lane, at);
      };
      for (const [at, one] of steps.entries()) {
        if (one === 'dequeue') {
          take();
          continue;
        }
        const job = (): Promise<unknown> => Promise.resolve();
        names.set(job, { lane: `${one.priority} ${one.group}`, at });
        left.add(job);
        queue.enqueue(job, one);
        expect(queue.size).toBe(left.size);
        expect(queue.filter({ priority: one.priority })).toContain(job);
      }
      while (left.size > 0) take();
      expect(queue.size).toBe(0);
    }),
  );
});
