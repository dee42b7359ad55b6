import { Writable } from 'node:stream';

import { expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { untilAborted } from '../../base/clock/deadline.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { ApiError } from '../client/errors.ts';
import type { ListWatch } from '../client/list-watch.ts';
import type { WatchEvent } from '../client/watch.ts';
import { machines } from '../client/resource.ts';
import { createLogger, silentLogger } from '../../base/log/logger.ts';
import { type InformerContinuity, ReflectedInformer } from './reflected-informer.ts';

/** An informer whose watches that break are followed by a list, unless `continuity` says otherwise. */
function informerOf(
  source: ListWatch<Machine>,
  clock: FakeClock,
  {
    continuity,
    ...options
  }: { onBlind?: (fromMs: number, toMs: number) => void; continuity?: Partial<InformerContinuity> } = {},
): ReflectedInformer<Machine> {
  return new ReflectedInformer({
    source,
    clock,
    log: silentLogger,
    cluster: 'control',
    streamLists: false,
    random: () => 0,
    continuity: {
      mustList: false,
      broke: () => undefined,
      untilVerified: () => Promise.resolve('unknown'),
      listed: () => undefined,
      setBack: () => undefined,
      onMustList: () => undefined,
      ...continuity,
    },
    ...options,
  });
}

test('names cluster and kind once in each line of its log', async () => {
  const ended = new AbortController();
  const lines: string[] = [];
  const output = new Writable({
    write(line, _encoding, done) {
      lines.push(String(line));
      ended.abort();
      done();
    },
  });
  const refused = (): never => {
    throw new ApiError(0, 'Unreachable', 'connect ECONNREFUSED');
  };
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list: () => Promise.reject(new ApiError(0, 'Unreachable', 'connect ECONNREFUSED')),
    watch: refused,
    answeredSince: () => Promise.resolve(),
  };
  const log = createLogger('debug', { destination: output });
  const informer = new ReflectedInformer({ source, clock: new FakeClock(), log, cluster: 'control' });

  await informer.run(ended.signal);

  expect(lines).toHaveLength(1);
  expect(lines[0]?.match(/"(?:kind|cluster)":/g)?.toSorted()).toEqual(['"cluster":', '"kind":']);
});

test('tells of the time in which nothing was seen before anybody relies on the list that shows it', async () => {
  const clock = new FakeClock();
  const ended = new AbortController();
  const told: string[] = [];
  let watches = 0;
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list() {
      clock.advance(4_000);
      return Promise.resolve({ metadata: { resourceVersion: '7' }, items: [] });
    },
    async *watch({ onOpen }) {
      clock.advance(3_000);
      onOpen?.();
      if ((watches += 1) === 2) ended.abort();
      yield { type: 'BOOKMARK', object: machine((m) => Object.assign(m.metadata, { resourceVersion: '8' })) };
      throw new ApiError(0, 'Unreachable', 'read ECONNRESET');
    },
    answeredSince: () => Promise.resolve(),
  };
  const informer = informerOf(source, clock, {
    onBlind: (fromMs, toMs) => told.push(`blind from ${fromMs} to ${toMs}`),
    continuity: { broke: () => told.push('broke'), listed: () => told.push('listed') },
  });

  await informer.run(ended.signal);

  expect(told.slice(0, 5)).toEqual([
    'listed',
    'broke',
    'blind from 7000 to 11000',
    'listed',
    'blind from 11000 to 14000',
  ]);
});

test('has not lost sight of anything when its first list is refused', async () => {
  const clock = new FakeClock();
  const ended = new AbortController();
  const told: string[] = [];
  let lists = 0;
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list() {
      clock.advance(4_000);
      if ((lists += 1) === 1)
        return Promise.reject(new ApiError(429, 'TooManyRequests', 'storage is (re)initializing'));
      return Promise.resolve({ metadata: { resourceVersion: '7' }, items: [] });
    },
    async *watch({ onOpen }) {
      onOpen?.();
      ended.abort();
      yield { type: 'BOOKMARK', object: machine((m) => Object.assign(m.metadata, { resourceVersion: '8' })) };
    },
    answeredSince: () => Promise.resolve(),
  };
  const informer = informerOf(source, clock, {
    onBlind: (fromMs, toMs) => told.push(`blind from ${fromMs} to ${toMs}`),
  });

  const running = informer.run(ended.signal);
  await clock.advanceAsync(10_000);
  await running;

  expect([lists, told]).toEqual([2, []]);
});

test('tells of deliveries each version right after the one before it, whatever was written or listed meanwhile', async () => {
  const ended = new AbortController();
  const version = (resourceVersion: number, uid = 'u-1'): Machine =>
    machine((m) => Object.assign(m.metadata, { uid, resourceVersion: String(resourceVersion) }));
  const modified = (resourceVersion: number): WatchEvent<Machine> => ({
    type: 'MODIFIED',
    object: version(resourceVersion),
  });
  const listed = [1, 9].values();
  let watches = 0;
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list() {
      const resourceVersion = listed.next().value as number;
      const metadata = { resourceVersion: String(resourceVersion) };
      return Promise.resolve({ metadata, items: [version(resourceVersion)] });
    },
    async *watch({ onOpen }) {
      onOpen?.();
      if ((watches += 1) === 1) {
        yield modified(2);
        informer.wrote(version(4));
        for (const one of [3, 4, 5]) yield modified(one);
        throw new ApiError(0, 'Unreachable', 'read ECONNRESET');
      }
      yield modified(10);
      informer.deleted({ metadata: version(10).metadata });
      yield { type: 'DELETED', object: version(11) };
      yield { type: 'ADDED', object: version(12, 'u-2') };
      yield { type: 'DELETED', object: version(13, 'u-2') };
      ended.abort();
    },
    answeredSince: () => Promise.resolve(),
  };
  const informer = informerOf(source, new FakeClock());
  const told: string[] = [];
  const versionOf = (one: Machine | undefined): string => one?.metadata.resourceVersion ?? '-';
  informer.onDelivered((old, current) => told.push(`${versionOf(old)} ${versionOf(current)}`));

  await informer.run(ended.signal);

  expect(told).toEqual(['1 2', '2 3', '3 4', '4 5', '9 10', '- 12', '12 -']);
});

test('is not listed ahead of its watch before its history was compared: the list would take the place of what is compared', async () => {
  const clock = new FakeClock();
  const ended = new AbortController();
  const verified = Promise.withResolvers<'same'>();
  const known = machine((m) => Object.assign(m.metadata, { resourceVersion: '1' }));
  let lists = 0;
  let isVerified = false;
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list() {
      lists += 1;
      return Promise.resolve({ metadata: { resourceVersion: String(lists) }, items: [known] });
    },
    async *watch({ signal }) {
      // The second one, which goes on, has nothing to say.
      if (isVerified) return untilAborted(new Promise<never>(() => undefined), signal);
      yield { type: 'BOOKMARK', object: known };
      throw new ApiError(0, 'Unreachable', 'read ECONNRESET');
    },
    answeredSince: () => Promise.resolve(),
  };
  const informer = informerOf(source, clock, { continuity: { untilVerified: () => verified.promise } });
  const running = informer.run(ended.signal);
  const reached = informer.waitFor('2', ended.signal);
  await clock.advanceAsync(10_000);
  expect(lists).toBe(1);

  isVerified = true;
  verified.resolve('same');
  await reached;

  expect(lists).toBe(2);
  ended.abort();
  await running;
});

test.each([
  { what: 'keeps what was written after a list that was made beside one that is slower', slow: '5', want: ['m-1'] },
  { what: 'takes a list of a server that was set back', slow: '2', want: [] },
  { what: 'takes a list that was begun after the one that was passed had failed', slow: undefined, want: [] },
])('$what', async ({ slow, want }) => {
  const clock = new FakeClock();
  const ended = new AbortController();
  const answer = Promise.withResolvers<void>();
  const watched: (string | undefined)[] = [];
  const failed = new ApiError(500, 'InternalError', 'no');
  const slowly = answer.promise.then(() => (slow === undefined ? Promise.reject(failed) : slow));
  const lists = [Promise.resolve('3'), slowly, Promise.resolve('7'), Promise.resolve('5')];
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    async list() {
      return { metadata: { resourceVersion: await (lists.shift() ?? never()) }, items: [] };
    },
    // oxlint-disable-next-line require-yield -- each ends at once, or never
    async *watch({ resourceVersion, signal }) {
      watched.push(resourceVersion);
      if (watched.length > 1) return await untilAborted(never(), signal);
      throw new ApiError(0, 'Unreachable', 'read ECONNRESET');
    },
    answeredSince: () => Promise.resolve(),
  };
  const informer = informerOf(source, clock);
  const running = informer.run(ended.signal);
  await clock.advanceAsync(1_000);
  // It waits for the second list, which is slow; the third is made for who waits for what it has written.
  const reached = informer.waitFor('6', ended.signal);
  await clock.advanceAsync(1_000);
  await reached;
  informer.wrote(machine((m) => Object.assign(m.metadata, { name: 'm-1', resourceVersion: '8' })));

  answer.resolve();
  await clock.advanceAsync(5_000);

  expect(informer.list().map(({ metadata }) => metadata.name)).toEqual(want);
  expect(watched.at(-1)).toBe(want.length > 0 ? '7' : (slow ?? '5'));
  ended.abort();
  await running;
});

test('that is refused after a restore compares the next list with nothing of before, and makes it at once', async () => {
  const clock = new FakeClock();
  const ended = new AbortController();
  const told: string[] = [];
  const at = (resourceVersion: string): Machine => machine((m) => Object.assign(m.metadata, { resourceVersion }));
  const lists = [
    { metadata: { resourceVersion: '100' }, items: [at('90')] },
    { metadata: { resourceVersion: '120' }, items: [at('70')] },
  ];
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list: () => Promise.resolve(lists.shift() ?? never()),
    // oxlint-disable-next-line require-yield -- it has nothing to say
    async *watch({ signal }) {
      return await untilAborted(never(), signal);
    },
    answeredSince: () => Promise.resolve(),
  };
  const informer = informerOf(source, clock, { continuity: { setBack: (why) => told.push(why) } });
  const running = informer.run(ended.signal);
  await clock.advanceAsync(1);

  informer.abandon();
  await clock.advanceAsync(1);

  expect([informer.resourceVersion, informer.list().map(({ metadata }) => metadata.resourceVersion), told]).toEqual([
    '120',
    ['70'],
    [],
  ]);
  ended.abort();
  await running;
});

test('whose watch is open is listed at once when nobody may rely on it before, and not when the watch ends', async () => {
  const clock = new FakeClock();
  const ended = new AbortController();
  const lists: string[] = [];
  let listAnew = (): void => undefined;
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list({ resourceVersion = '' }) {
      lists.push(resourceVersion);
      return Promise.resolve({ metadata: { resourceVersion: '7' }, items: [] });
    },
    // oxlint-disable-next-line require-yield -- it has nothing to say
    async *watch({ signal }) {
      return await untilAborted(never(), signal);
    },
    answeredSince: () => Promise.resolve(),
  };
  const continuity = { onMustList: (then: () => void) => void (listAnew = then) };
  const running = informerOf(source, clock, { continuity }).run(ended.signal);
  await clock.advanceAsync(1);

  listAnew();
  await clock.advanceAsync(1);

  expect(lists).toEqual(['0', '']);
  ended.abort();
  await running;
});

function never(): Promise<never> {
  return new Promise(() => undefined);
}
