import { setImmediate } from 'node:timers/promises';

import { expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { ApiError } from '../client/errors.ts';
import type { ListWatch, WatchOptions } from '../client/list-watch.ts';
import { machines } from '../client/resource.ts';
import type { WatchEvent } from '../client/watch.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { ReflectedInformer } from './reflected-informer.ts';
import { type Continuity, Reflector, type WatchSeconds } from './reflector.ts';

const PAUSES = 7;
/** Longer than the pauses of a server that is starting. */
const RETRY_AFTER_MS = 20_000;

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

async function* starting(): AsyncGenerator<never> {
  throw new ApiError(503, 'ServiceUnavailable', 'starting');
}

async function* throttled(): AsyncGenerator<never> {
  throw new ApiError(429, 'TooManyRequests', 'too many requests', { retryAfterMs: RETRY_AFTER_MS });
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
  continuity?: Continuity,
  count = PAUSES,
): Promise<readonly number[]> {
  const clock = new HastyClock();
  const enough = new AbortController();
  const beginnings: number[] = [];
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list: () => Promise.resolve({ metadata: { resourceVersion: '1' }, items: [] }),
    watch(options) {
      if (beginnings.push(clock.monotonicMs()) > count) enough.abort();
      return watch(options);
    },
    answeredSince,
  };
  const sink = { resourceVersion: () => '1', keep: <T>(it: T): T => it, replace() {}, deliver() {}, reach() {} };
  const how = { clock, continuity, log: silentLogger, streamLists: false, random: () => 0.5 };
  await new Reflector({ source, sink, ...how }).run(enough.signal);
  return beginnings.slice(1).map((atMs, i) => atMs - (beginnings[i] ?? 0));
}

const BOOKMARKED = machine((m) => Object.assign(m.metadata, { resourceVersion: '70' }));

/** What becomes of watches that end like these: from where each began, and whether it was listed in between. */
async function courseOf(
  endings: readonly ('time-over' | 'early' | 'breaks' | 'expired' | 'refused')[],
  found: 'same' | 'unknown',
  mustList = false,
): Promise<readonly string[]> {
  const clock = new HastyClock();
  const enough = new AbortController();
  const course: string[] = [];
  const left = [...endings];
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list({ resourceVersion = '' }) {
      course.push(`list ${resourceVersion === '' ? 'by quorum' : resourceVersion}`);
      return Promise.resolve({ metadata: { resourceVersion: '70' }, items: [] });
    },
    async *watch({ resourceVersion = '', timeoutSeconds = 0, onOpen }) {
      course.push(`watch ${resourceVersion}`);
      const next = left.shift();
      if (next === undefined) return enough.abort();
      if (next === 'refused') throw new ApiError(403, 'Forbidden', 'cannot watch');
      onOpen?.();
      yield { type: 'BOOKMARK', object: BOOKMARKED } as const;
      if (next === 'time-over') clock.advance(timeoutSeconds * 1_000);
      if (next === 'early') clock.advance(timeoutSeconds * 500);
      if (next === 'expired') throw new ApiError(410, 'Expired', 'too old resource version');
      if (next === 'breaks') throw new ApiError(0, 'Unreachable', 'read ECONNRESET');
    },
    answeredSince: atOnce,
  };
  const sink = {
    keep: <T>(it: T): T => it,
    replace() {},
    deliver() {},
    reach() {},
    resourceVersion: () => '70',
    lastChange: () => '50',
  };
  const continuity = {
    mustList,
    broke: () => void course.push('broke'),
    untilVerified: () => Promise.resolve(found),
  };
  const options = { source, sink, clock, continuity, log: silentLogger, streamLists: false, random: () => 0.5 };
  await new Reflector(options).run(enough.signal);
  return course;
}

test.each([
  { what: 'whose time was over goes on where it was', ending: 'time-over', found: 'same', goesOn: ['watch 70'] },
  { what: 'that broke goes on from the last change', ending: 'breaks', found: 'same', goesOn: ['broke', 'watch 50'] },
  { what: 'that the server ended early does so too', ending: 'early', found: 'same', goesOn: ['broke', 'watch 50'] },
  {
    what: 'that broke is preceded by a quorum list when the last change was not found',
    ending: 'breaks',
    found: 'unknown',
    goesOn: ['broke', 'list by quorum', 'watch 70'],
  },
] as const)('a watch $what', async ({ ending: end, found, goesOn }) => {
  expect(await courseOf([end], found)).toEqual(['list 70', 'watch 70', ...goesOn]);
});

test('a watch whose place the server has forgotten counts as broken, unless the server was just found to go on from there', async () => {
  expect(await courseOf(['expired'], 'same')).toEqual(['list 70', 'watch 70', 'broke', 'list by quorum', 'watch 70']);
  expect(await courseOf(['breaks', 'expired'], 'same')).toEqual([
    'list 70',
    'watch 70',
    'broke',
    'watch 50',
    'list 70',
    'watch 70',
  ]);
});

test('watches that are refused again and again by a server that answers reads are replaced by lists after a minute, until one is opened', async () => {
  const refused = ['broke', 'watch 50'];
  const listed = ['broke', 'list 70', 'watch 70'];

  expect(await courseOf([...Array.from({ length: 9 }, () => 'refused' as const), 'breaks'], 'same')).toEqual([
    'list 70',
    'watch 70',
    ...Array.from({ length: 6 }, () => refused).flat(),
    ...listed,
    ...listed,
    ...listed,
    ...refused,
  ]);
});

test('a watch whose time was over is followed by a quorum list when nobody may rely on what it adds to', async () => {
  expect(await courseOf(['time-over'], 'unknown', true)).toEqual(['list 70', 'watch 70', 'list by quorum', 'watch 70']);
});

test.each([
  { what: 'goes on is made again', found: 'same', asked: ['70', '70'] },
  { what: 'cannot be compared is made again by quorum', found: 'unknown', asked: ['70', ''] },
] as const)('a list that failed in a history that $what', async ({ found, asked }) => {
  const enough = new AbortController();
  const lists: (string | undefined)[] = [];
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list({ resourceVersion }) {
      if (lists.push(resourceVersion) === 2) enough.abort();
      return Promise.reject(new ApiError(403, 'Forbidden', 'not yet'));
    },
    watch: unreachable,
    answeredSince: atOnce,
  };
  const sink = { resourceVersion: () => '70', keep: <T>(it: T): T => it, replace() {}, deliver() {}, reach() {} };
  const continuity = { mustList: false, broke: () => undefined, untilVerified: () => Promise.resolve(found) };
  const options = { source, sink, continuity, clock: new HastyClock(), log: silentLogger, streamLists: false };
  await new Reflector(options).run(enough.signal);

  expect(lists).toEqual(asked);
});

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
  {
    what: 'the server asks to wait that long, and has answered somebody else',
    watch: throttled,
    answeredSince: atOnce,
    pauses: Array.from({ length: PAUSES }, () => RETRY_AFTER_MS),
  },
])('waits $pauses ms when $what', async ({ watch, answeredSince, pauses }) => {
  expect(await pausesBetween(watch, answeredSince)).toEqual(pauses);
});

test.each([
  { what: 'does not answer', watch: unreachable },
  { what: 'answers as one that starts', watch: starting },
])(
  'lists instead of watches that a server $what, while it answers reads, are made ever more rarely after a minute',
  async ({ watch }) => {
    const continuity = {
      mustList: false,
      broke: () => undefined,
      untilVerified: () => Promise.resolve('same' as const),
    };

    const pauses = await pausesBetween(watch, atOnce, continuity, 100);

    expect(pauses.slice(-3)).toEqual([30_000, 30_000, 30_000]);
  },
);

/** What a cache asks for while this is answered until then, and when its watch is open (ms). The first verification takes a while. */
async function outage(
  answer: { readonly list?: ApiError; readonly watch?: ApiError },
  untilMs: number,
  { verifiedAfterMs = 0 } = {},
) {
  const clock = new HastyClock();
  const enough = new AbortController();
  const lists: number[] = [];
  const beganMs = clock.monotonicMs();
  const nowMs = (): number => clock.monotonicMs() - beganMs;
  let [openMs, watches] = [-1, 0];
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list() {
      lists.push(nowMs());
      if (lists.length > 1 && answer.list !== undefined && nowMs() < untilMs) return Promise.reject(answer.list);
      return Promise.resolve({ metadata: { resourceVersion: '1' }, items: [] });
    },
    // oxlint-disable-next-line require-yield -- nothing comes of these watches
    async *watch({ onOpen }) {
      watches += 1;
      if (nowMs() < untilMs && answer.watch !== undefined) throw answer.watch;
      if (nowMs() < untilMs && watches === 1) throw new ApiError(410, 'Expired', 'too old resource version');
      onOpen?.();
      openMs = nowMs();
      enough.abort();
    },
    answeredSince: atOnce,
  };
  const sink = { keep: <T>(it: T): T => it, replace() {}, deliver() {}, reach() {} };
  const at = { resourceVersion: () => '1', lastChange: () => '1' };
  let verifications = 0;
  const untilVerified = async (): Promise<'same'> => {
    if ((verifications += 1) === 2) await clock.sleep(verifiedAfterMs, enough.signal);
    return 'same';
  };
  const continuity = { mustList: false, broke: () => undefined, untilVerified };
  const how = { clock, continuity, log: silentLogger, streamLists: false, random: () => 0.5 };
  await new Reflector({ source, sink: { ...sink, ...at }, ...how }).run(enough.signal);
  return { lists: lists.length, lateMs: openMs - untilMs };
}

test.each([
  { what: 'throttles watches', answer: { watch: new ApiError(429, 'TooManyRequests', 'filled') }, untilMs: 12_000 },
  { what: 'does not serve watches yet', answer: { watch: new ApiError(503, 'Unavailable', 'no') }, untilMs: 50_000 },
])('a server that $what while it starts has its watches resumed soon after, without a list', async (row) => {
  const { lists, lateMs } = await outage(row.answer, row.untilMs);

  expect(lists).toBe(1);
  expect(lateMs).toBeLessThan(2_500);
});

test('a server that throttles watches while it starts is not listed because one was refused just before its outage', async () => {
  const refused = { watch: new ApiError(429, 'TooManyRequests', 'filled') };
  const { lists, lateMs } = await outage(refused, 132_000, { verifiedAfterMs: 120_000 });

  expect(lists).toBe(1);
  expect(lateMs).toBeLessThan(2_500);
});

test('lists that fail for minutes as of a server that starts are not taken for watches that are not opened', async () => {
  const { lateMs } = await outage({ list: new ApiError(404, 'NotFound', 'not served') }, 170_000);

  expect(lateMs).toBeLessThan(2_500);
});

/** For how long a cache asks for watches that bring these events, one each, and for the next one. */
async function secondsOf(
  events: readonly WatchEvent<Machine>[],
  { random, watchSeconds }: { readonly random: number; readonly watchSeconds: WatchSeconds },
): Promise<readonly (number | undefined)[]> {
  const enough = new AbortController();
  const seconds: (number | undefined)[] = [];
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list: () => Promise.resolve({ metadata: { resourceVersion: '1' }, items: [] }),
    async *watch({ timeoutSeconds }) {
      await Promise.resolve(seconds.push(timeoutSeconds));
      const event = events[seconds.length - 1];
      if (event === undefined) enough.abort();
      else yield event;
    },
    answeredSince: atOnce,
  };
  const how = { clock: new HastyClock(), log: silentLogger, streamLists: false, random: () => random, watchSeconds };
  await new ReflectedInformer({ source, cluster: 'target', ...how }).run(enough.signal);
  return seconds;
}

const BOOKMARK: WatchEvent<Machine> = { type: 'BOOKMARK', object: BOOKMARKED };

test.each([
  { random: 0, asked: 40 },
  { random: 0.99, asked: 56 },
])('watches of a cache last as long as it is told: $asked s', async ({ random, asked }) => {
  expect(await secondsOf([], { random, watchSeconds: { least: 40, spread: 16 } })).toEqual([asked]);
});

test('a watch lasts longer once a server has sent bookmarks in the one before, and the usual time after one without', async () => {
  const changed = machine((m) => Object.assign(m.metadata, { resourceVersion: '71' }));
  const events: readonly WatchEvent<Machine>[] = [BOOKMARK, BOOKMARK, { type: 'MODIFIED', object: changed }, BOOKMARK];
  const watchSeconds = { least: 70, spread: 16, bookmarked: { least: 280, spread: 40 } };

  expect(await secondsOf(events, { random: 0, watchSeconds })).toEqual([70, 280, 280, 70, 280]);
});
