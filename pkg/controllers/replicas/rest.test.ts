import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { queueMetrics } from '../../base/metrics/queue.ts';
import { Backoff } from '../../work/workqueue/backoff.ts';
import { KeyedQueue } from '../../work/workqueue/keyed-queue.ts';
import { restMsFor } from './rest.ts';

test.each([
  { machines: 0, ms: 0 },
  { machines: 10, ms: 2 },
  { machines: 500, ms: 100 },
  { machines: 5_000, ms: 1_000 },
  { machines: 50_000, ms: 1_000 },
])('an owner of $machines machines rests for $ms ms', ({ machines, ms }) => {
  expect(restMsFor(machines)).toBe(ms);
});

/** How often each Machine of a set is looked at while all of them change one by one, one each 10 ms. */
async function looksAtEach(machines: number): Promise<number> {
  const clock = new FakeClock();
  let looks = 0;
  const queue = new KeyedQueue({
    name: 'machineset',
    concurrency: 1,
    clock,
    backoff: new Backoff({ baseMs: 100, maxMs: 10_000 }),
    metrics: queueMetrics(new Registry()),
    restMs: () => restMsFor(machines),
    work: () => {
      looks += machines;
      return Promise.resolve({ kind: 'done' });
    },
  });
  for (let i = 0; i < machines; i++) {
    queue.add('default/set-1');
    await clock.advanceAsync(10);
  }
  return looks / machines;
}

test.each([200, 400, 800])(
  'a set of %i machines that all change looks at each no more often than a small one',
  async (machines) => {
    expect(await looksAtEach(machines)).toBeLessThanOrEqual(51);
  },
);
