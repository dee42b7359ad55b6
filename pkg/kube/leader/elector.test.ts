import { once } from 'node:events';

import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { MemoryLeases } from '../../../test/memory-leases.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { leaderMetrics } from '../../base/metrics/leader.ts';
import { ApiError } from '../client/errors.ts';
import { LeaseFence } from '../gate/fence.ts';
import { Elector } from './elector.ts';
import type { LeaseTiming } from './lease.ts';

const TIMING: LeaseTiming = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 };

/** When the holder of a Lease writes it within the first seconds, of which some writes fail (by their number). */
async function renewalsWithin(ms: number, timing: LeaseTiming, failing: readonly number[] = []) {
  const clock = new FakeClock();
  const stored = new MemoryLeases();
  const writtenMs: number[] = [];
  const elector = new Elector({
    name: 'shard',
    identity: 'us',
    leases: {
      get: (name) => stored.get(name),
      create: (lease) => stored.create(lease),
      replace(lease) {
        writtenMs.push(clock.monotonicMs());
        return failing.includes(writtenMs.length)
          ? Promise.reject(new ApiError(500, 'InternalError', 'no'))
          : stored.replace(lease);
      },
      async *watch(_name, signal) {
        if (!signal.aborted) await once(signal, 'abort');
        yield* [];
      },
    },
    timing,
    clock,
    log: silentLogger,
    metrics: leaderMetrics(new Registry()),
    fence: new LeaseFence({ clock, renewDeadlineMs: timing.renewDeadlineMs }),
    lost: (reason) => {
      throw new Error(reason);
    },
    announce: () => undefined,
  });
  const stop = new AbortController();
  await elector.acquire(stop.signal);
  await clock.advanceAsync(ms);
  const { isLeading } = elector;
  await elector.release(() => Promise.resolve());
  return { writtenMs: writtenMs.filter((at) => at <= ms && at > 0), isLeading };
}

test('a holder renews its Lease each retry period, or as often as it is told', async () => {
  expect((await renewalsWithin(7_000, TIMING)).writtenMs.slice(0, 3)).toEqual([2_000, 4_000, 6_000]);
  const told = await renewalsWithin(11_000, { ...TIMING, renewPeriodMs: 3_000 });

  expect(told.writtenMs.slice(0, 3)).toEqual([3_000, 6_000, 9_000]);
  expect(told.isLeading).toBe(true);
});

test('a renewal that failed is repeated after the retry period', async () => {
  const { writtenMs, isLeading } = await renewalsWithin(13_500, { ...TIMING, renewPeriodMs: 3_000 }, [2, 3]);

  expect(writtenMs.slice(0, 5)).toEqual([3_000, 6_000, 8_000, 10_000, 13_000]);
  expect(isLeading).toBe(true);
});
