import { setImmediate } from 'node:timers/promises';

import { expect, test } from '@jest/globals';

import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import { FakeClock } from '../clock/fake-clock.ts';
import { ApiError } from '../kube/errors.ts';
import type { ListWatch, WatchOptions } from '../kube/list-watch.ts';
import { machines } from '../kube/resource.ts';
import { silentLogger } from '../log/logger.ts';
import { Reflector } from './reflector.ts';

const PAUSES = 7;

/** Time passes whenever somebody sleeps to the end. */
class HastyClock extends FakeClock {
  override async sleep(delayMs: number, signal: AbortSignal): Promise<void> {
    await setImmediate();
    signal.throwIfAborted();
    this.advance(delayMs);
  }
}

/* oxlint-disable require-yield -- nothing comes of these watches */
async function* unreachable(): AsyncGenerator<never> {
  throw new ApiError(0, 'Unreachable', 'read ECONNRESET');
}

async function* breaking({ onOpen }: WatchOptions): AsyncGenerator<never> {
  onOpen?.();
  yield* unreachable();
}

async function* ending({ onOpen }: WatchOptions): AsyncGenerator<never> {
  onOpen?.();
}
/* oxlint-enable require-yield */

const never = (): Promise<void> => new Promise(() => undefined);
const atOnce = (): Promise<void> => Promise.resolve();

/** The pauses that a reflector makes between watches like this one. */
async function pausesBetween(
  watch: (options: WatchOptions) => AsyncGenerator<never>,
  answeredSince: () => Promise<void>,
): Promise<readonly number[]> {
  const clock = new HastyClock();
  const enough = new AbortController();
  const beginnings: number[] = [];
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list: () => Promise.resolve({ metadata: { resourceVersion: '1' }, items: [] }),
    watch(options) {
      if (beginnings.push(clock.monotonicMs()) > PAUSES) enough.abort();
      return watch(options);
    },
    answeredSince,
  };
  const sink = { resourceVersion: () => '1', keep: <T>(it: T): T => it, replace() {}, deliver() {}, reach() {} };
  const reflector = new Reflector({ source, sink, clock, log: silentLogger, streamLists: false, random: () => 0.5 });
  await reflector.run(enough.signal);
  return beginnings.slice(1).map((atMs, i) => atMs - (beginnings[i] ?? 0));
}

const SHORT = Array.from({ length: PAUSES }, () => 800);
const LONGER_AND_LONGER = [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000];

test.each([
  {
    what: 'the network breaks again and again soon after it was reached',
    watch: breaking,
    answeredSince: never,
    pauses: SHORT,
  },
  { what: 'the server cannot be reached', watch: unreachable, answeredSince: never, pauses: LONGER_AND_LONGER },
  {
    what: 'the server was not reached, but has answered somebody else',
    watch: unreachable,
    answeredSince: atOnce,
    pauses: SHORT,
  },
  {
    what: 'the server ends each watch as soon as it has accepted it',
    watch: ending,
    answeredSince: atOnce,
    pauses: LONGER_AND_LONGER,
  },
])('waits $pauses ms when $what', async ({ watch, answeredSince, pauses }) => {
  expect(await pausesBetween(watch, answeredSince)).toEqual(pauses);
});
