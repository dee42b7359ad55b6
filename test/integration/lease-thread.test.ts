import { afterEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { LeaseFence } from '../../pkg/kube/gate/fence.ts';
import type { Endpoint } from '../../pkg/kube/client/endpoint.ts';
import { HttpLeaseClient } from '../../pkg/kube/client/lease-client.ts';
import { Transport } from '../../pkg/kube/client/transport.ts';
import type { LeaseTiming } from '../../pkg/kube/leader/lease.ts';
import { LeaseThread } from '../../pkg/kube/leader/lease-thread.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { leaderMetrics } from '../../pkg/base/metrics/leader.ts';
import { connect, namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { FaultProxy } from '../proxy/fault-proxy.ts';
import { adminEndpoint } from './kube-session.ts';

const LEASE = 'machine-controller';
const TIMING: LeaseTiming = { leaseDurationMs: 12_000, renewDeadlineMs: 8_000, retryPeriodMs: 500 };
const clock = new SystemClock();

const leftOpen: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of leftOpen.splice(0).toReversed()) await close();
});

function clientFor(ns: string): HttpLeaseClient {
  const transport = new Transport({ endpoint: adminEndpoint(connect()), clock, userAgent: 'test' });
  leftOpen.push(() => transport.close());
  return new HttpLeaseClient({ transport, namespace: ns });
}

function threadIn(ns: string, identity: string, longestStallMs?: number, endpoint = adminEndpoint(connect())) {
  const requests: number[] = [];
  const thread = new LeaseThread({
    endpoint,
    namespace: ns,
    identity,
    userAgent: 'test',
    timing: TIMING,
    clock,
    log: silentLogger,
    onRequest: ({ code }) => requests.push(code),
    ...(longestStallMs === undefined ? {} : { longestStallMs }),
  });
  leftOpen.push(() => thread.close());
  return { thread, requests };
}

function candidate({ thread }: ReturnType<typeof threadIn>, name = LEASE) {
  const fence = new LeaseFence({ clock, renewDeadlineMs: TIMING.renewDeadlineMs });
  const lost: string[] = [];
  const announced: string[] = [];
  const metrics = leaderMetrics(new Registry());
  const elector = thread.elector({
    name,
    metrics,
    fence,
    lost: (reason) => lost.push(reason),
    announce: (_lease, message) => announced.push(message),
  });
  const stop = new AbortController();
  leftOpen.push(async () => stop.abort(new Error('test ended')));
  return { elector, fence, lost, announced, metrics, stop, acquire: () => elector.acquire(stop.signal) };
}

/** The event loop of this thread does not turn meanwhile, and leaves the processor to others. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test('the Lease is kept, and the fence open, while the event loop stands still for longer than the renew deadline, again and again', async () => {
  await using ns = await namespace();
  const leader = candidate(threadIn(ns.name, 'leader'));
  await leader.acquire();

  const open: boolean[] = [];
  for (let i = 0; i < 3; i++) {
    standStill(TIMING.renewDeadlineMs + 1_000);
    open.push(leader.fence.remainingMs > 0);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { spec } = await clientFor(ns.name).get(LEASE);

  expect(open).toEqual([true, true, true]);
  expect(leader.lost).toEqual([]);
  expect(spec).toMatchObject({ holderIdentity: 'leader', leaseTransitions: 1 });
  expect(leader.fence.token).toBe(1n);
});

test('a process whose event loop does not turn any more loses the Lease, and its fence is closed before anybody takes it', async () => {
  await using ns = await namespace();
  const leader = candidate(threadIn(ns.name, 'leader', 1_000));
  await leader.acquire();

  standStill(TIMING.leaseDurationMs);
  const wasOpen = leader.fence.remainingMs > 0;
  await eventually(() => leader.lost.length === 1);
  const next = candidate(threadIn(ns.name, 'next'));
  await next.acquire();

  expect(wasOpen).toBe(false);
  expect(leader.elector.ended).toMatch(
    /^lost leadership: the Lease could not be renewed for 8000 ms: the event loop of the process has been blocked for \d+ ms$/,
  );
  expect(leader.elector.isLeading).toBe(false);
  expect(next.fence.token).toBe(2n);
});

test('what happens in the thread is seen, counted and announced: leading, standing by, release', async () => {
  await using ns = await namespace();
  const one = threadIn(ns.name, 'one');
  const first = candidate(one);
  const second = candidate(threadIn(ns.name, 'two'));
  await first.acquire();
  const taking = second.acquire();
  await eventually(() => second.elector.holder === 'one');
  const held = first.elector.lease?.spec?.holderIdentity;

  const mutation = Promise.withResolvers<void>();
  const releasing = first.elector.release(() => mutation.promise);
  const wasLeading = first.elector.isLeading && first.fence.remainingMs > 0;
  mutation.resolve();
  await releasing;
  const remainingMs = first.fence.remainingMs;
  await taking;

  expect({ held, wasLeading, remainingMs }).toEqual({ held: 'one', wasLeading: true, remainingMs: 0 });
  expect(first.announced).toEqual(['one became leader', 'one stopped leading']);
  expect(first.elector.ended).toBe('released the Lease');
  expect(second.elector.isLeading).toBe(true);
  expect(second.fence.token).toBe(2n);
  expect((await first.metrics.renewals.get()).values).toContainEqual(
    expect.objectContaining({ labels: { lease: LEASE, result: 'ok' } }),
  );
  expect((await second.metrics.isLeader.get()).values).toMatchObject([{ value: 1 }]);
  expect(one.requests).toContain(201);
});

test('the token is raised by the thread, and can be read at once', async () => {
  await using ns = await namespace();
  const leader = candidate(threadIn(ns.name, 'leader'));
  await leader.acquire();

  const answer = await leader.elector.raiseAbove(41n);

  expect(answer).toBeUndefined();
  expect(leader.fence.token).toBe(42n);
  expect((await clientFor(ns.name).get(LEASE)).spec?.leaseTransitions).toBe(42);
});

test('a candidate that is told to stop does not lead, and leaves the Lease alone', async () => {
  await using ns = await namespace();
  const first = candidate(threadIn(ns.name, 'one'));
  const second = candidate(threadIn(ns.name, 'two'));
  await first.acquire();
  const taking = second.acquire().catch((err: unknown) => err);
  await eventually(() => second.elector.holder === 'one');

  second.stop.abort(new Error('told to stop'));
  const end = await taking;
  await second.elector.release(() => Promise.resolve());

  expect(end).toEqual(new Error('told to stop'));
  expect(second.elector.ended).toBe('no longer a candidate');
  expect(second.announced).toEqual([]);
  expect(first.elector.isLeading).toBe(true);
});

test('when the thread dies, leadership is lost and the fence closed at once', async () => {
  await using ns = await namespace();
  const threaded = threadIn(ns.name, 'leader');
  const leader = candidate(threaded);
  await leader.acquire();

  const memory = new SharedArrayBuffer(1); // no cell fits in: the thread fails
  const broken = threaded.thread.elector({
    name: 'broken',
    metrics: leaderMetrics(new Registry()),
    fence: { memory, close: () => undefined },
    lost: () => undefined,
    announce: () => undefined,
  });
  void broken.acquire(leader.stop.signal).catch(() => undefined);
  await eventually(() => leader.lost.length === 1);

  expect(leader.lost[0]).toMatch(/^leadership of machine-controller was lost: the Lease thread failed: /);
  expect(leader.fence.remainingMs).toBe(0);
  expect(leader.elector.isLeading).toBe(false);
});

test('a process that has no credentials any more loses the Lease, although those of the thread are accepted', async () => {
  await using ns = await namespace();
  const own = adminEndpoint(connect());
  let lacks: string | undefined;
  const endpoint: Endpoint = {
    ...own,
    credentials: async () => (lacks === undefined ? own.credentials() : Promise.reject(new Error(lacks))),
  };
  const leader = candidate(threadIn(ns.name, 'leader', undefined, endpoint));
  await leader.acquire();

  lacks = 'the credential plugin hangs';
  await eventually(() => leader.lost.length === 1);

  expect(leader.fence.remainingMs).toBe(0);
  // On a starved host, a renewal before may have had no answer: then it is suspended first, and lost when its refusals last.
  expect(leader.elector.ended).toMatch(
    /^lost leadership: the Lease could not be renewed(?: for 8000 ms)?: .*: the credential plugin hangs$/,
  );
});

test('credentials that are missing for a moment cost no Lease, and another server is taken', async () => {
  await using ns = await namespace();
  await using former = await FaultProxy.start(connect().url);
  await using latter = await FaultProxy.start(connect().url);
  const own = adminEndpoint(connect());
  let [url, isMissing, asked] = [former.url, false, 0];
  const endpoint: Endpoint = {
    ...own,
    get url() {
      return url;
    },
    async credentials() {
      asked += 1;
      if (isMissing) throw new Error('there are none');
      return own.credentials();
    },
  };
  const leader = candidate(threadIn(ns.name, 'leader', undefined, endpoint));
  await leader.acquire();

  url = latter.url;
  await eventually(() => latter.accepted > 0 && former.open === 0);
  isMissing = true;
  const before = asked;
  await eventually(() => asked > before);
  isMissing = false;
  const { spec } = leader.elector.lease ?? {};
  await eventually(() => leader.elector.lease?.spec?.renewTime !== spec?.renewTime);

  expect(leader.lost).toEqual([]);
  expect(leader.fence.token).toBe(1n);
});
