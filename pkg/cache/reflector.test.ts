import { expect, test } from '@jest/globals';

import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import { FakeClock } from '../clock/fake-clock.ts';
import { ApiError } from '../kube/errors.ts';
import type { ListWatch, WatchOptions } from '../kube/list-watch.ts';
import { machines } from '../kube/resource.ts';
import type { WatchEvent } from '../kube/watch.ts';
import { silentLogger } from '../log/logger.ts';
import { Reflector } from './reflector.ts';

const ROUNDS = 7;

/** Notes pauses instead of making them, and stops after some. */
class HastyClock extends FakeClock {
  readonly pauses: number[] = [];
  readonly enough = new AbortController();

  override sleep(delayMs: number): Promise<void> {
    if (this.pauses.push(delayMs) === ROUNDS) this.enough.abort();
    return Promise.resolve();
  }
}

type Watch = (options: WatchOptions) => AsyncGenerator<WatchEvent<Machine>>;

function broken(): ApiError {
  return new ApiError(0, 'Unreachable', 'reading a watch: read ECONNRESET');
}

/** The pauses that a reflector makes between watches like this one. */
async function pausesBetween(watch: Watch): Promise<readonly number[]> {
  const clock = new HastyClock();
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list: () => Promise.resolve({ metadata: { resourceVersion: '1' }, items: [] }),
    watch,
  };
  const sink = { resourceVersion: () => '1', keep: <T>(it: T): T => it, replace() {}, deliver() {}, reach() {} };
  const reflector = new Reflector({ source, sink, clock, log: silentLogger, streamLists: false, random: () => 0.5 });
  await reflector.run(clock.enough.signal);
  return clock.pauses;
}

const SHORT = Array.from({ length: ROUNDS }, () => 800);
const LONGER_AND_LONGER = [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000];

test.each([
  {
    what: 'the network breaks again and again soon after it was reached',
    wait: 'shortly each time',
    pauses: SHORT,
    watch: async function* ({ onOpen }: WatchOptions): AsyncGenerator<never> {
      onOpen?.();
      yield* [];
      throw broken();
    },
  },
  {
    what: 'the server cannot be reached',
    wait: 'longer and longer',
    pauses: LONGER_AND_LONGER,
    watch: async function* (): AsyncGenerator<never> {
      yield* [];
      throw broken();
    },
  },
  {
    what: 'the server ends each watch as soon as it has accepted it',
    wait: 'longer and longer',
    pauses: LONGER_AND_LONGER,
    watch: async function* ({ onOpen }: WatchOptions): AsyncGenerator<never> {
      onOpen?.();
      yield* [];
    },
  },
])('waits $wait when $what', async ({ pauses, ...row }) => {
  expect(await pausesBetween((options) => row.watch(options))).toEqual(pauses);
});

/** The resourceVersions that are asked for until a list succeeds. */
async function listsUntilOneSucceeds(
  answer: (resourceVersion: string | undefined) => void,
): Promise<readonly unknown[]> {
  const asked: unknown[] = [];
  const done = new AbortController();
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list: async ({ resourceVersion }) => {
      if (asked.push(resourceVersion) === ROUNDS) done.abort();
      answer(resourceVersion);
      return { metadata: { resourceVersion: '3' }, items: [] };
    },
    watch: async function* (): AsyncGenerator<never> {
      yield* [];
      throw broken();
    },
  };
  const sink = {
    resourceVersion: () => '7',
    keep: <T>(it: T): T => it,
    replace: () => done.abort(),
    deliver() {},
    reach() {},
  };
  const clock = new HastyClock();
  await new Reflector({ source, sink, clock, log: silentLogger, streamLists: false }).run(done.signal);
  return asked;
}

test.each([
  {
    what: 'the server was set back to before what we have seen',
    refusal: new ApiError(504, 'Timeout', 'Too large resource version: 7, current: 3', {
      status: { kind: 'Status', details: { causes: [{ reason: 'ResourceVersionTooLarge' }] } },
    }),
  },
  { what: 'what we have seen is too old for the server', refusal: new ApiError(410, 'Expired', 'too old') },
])('asks for the truth itself when $what', async ({ refusal }) => {
  const asked = await listsUntilOneSucceeds((resourceVersion) => {
    if (resourceVersion !== '') throw refusal;
  });

  expect(asked).toEqual(['7', '']);
});
