import { afterEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { LeaseFence } from '../../pkg/kube/gate/fence.ts';
import { ApiError, REFUSAL_PATIENCE_MS } from '../../pkg/kube/client/errors.ts';
import { HttpLeaseClient } from '../../pkg/kube/client/lease-client.ts';
import { Transport } from '../../pkg/kube/client/transport.ts';
import { Elector, type ElectorDeps } from '../../pkg/kube/leader/elector.ts';
import { releasedLease, takenLease, type LeaseTiming } from '../../pkg/kube/leader/lease.ts';
import { silentLogger, type LogFields } from '../../pkg/base/log/logger.ts';
import { leaderMetrics } from '../../pkg/base/metrics/leader.ts';
import { connect, namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { FaultProxy } from '../proxy/fault-proxy.ts';
import { adminEndpoint } from './kube-session.ts';

const LEASE = 'machine-controller';
const DEFAULTS: LeaseTiming = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 };
/** Renewed often, and not lost because the host is busy for a while. */
const OFTEN: LeaseTiming = { leaseDurationMs: 30_000, renewDeadlineMs: 20_000, retryPeriodMs: 300 };
/** Runs out soon, for tests that wait for that. */
const SHORT: LeaseTiming = { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 300 };
/** The same, for tests in which it must not run out again because the host is busy for a moment. */
const UNHURRIED: LeaseTiming = { leaseDurationMs: 12_000, renewDeadlineMs: 8_000, retryPeriodMs: 300 };
/** Renewed only when somebody asks for it, as far as a test is concerned. */
const RARE: LeaseTiming = { leaseDurationMs: 60_000, renewDeadlineMs: 50_000, retryPeriodMs: 40_000 };
const clock = new SystemClock();

const leftOpen: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of leftOpen.splice(0).toReversed()) await close();
});

type LeaseClient = ElectorDeps['leases'];

/** The real client, with the connection to the server under the test's hand. */
class Wire implements LeaseClient {
  readonly #client: LeaseClient;
  /** up; loses-answers: requests reach the server, their answers do not come back; cut: nothing goes through; refused: answered with 403. */
  state: 'up' | 'loses-answers' | 'cut' | 'refused' = 'up';
  renewals = 0;
  /** How long each answer takes. */
  answersAfterMs = 0;
  /** Writes are held back until it resolves. */
  held: Promise<void> = Promise.resolve();
  /** Writes that wait, and those that were given up by the caller before they were sent. */
  waiting = 0;
  givenUp = 0;

  constructor(client: LeaseClient) {
    this.#client = client;
  }

  get: LeaseClient['get'] = (name, options) => this.#pass(() => this.#client.get(name, options));
  create: LeaseClient['create'] = async (lease, options) => {
    await this.#hold(options?.signal);
    return this.#pass(() => this.#client.create(lease, options));
  };
  replace: LeaseClient['replace'] = async (lease, options) => {
    this.renewals += 1;
    await this.#hold(options?.signal);
    return this.#pass(() => this.#client.replace(lease, options));
  };
  watch: LeaseClient['watch'] = (name, signal) => this.#client.watch(name, signal);

  async #hold(signal: AbortSignal | undefined): Promise<void> {
    this.waiting += 1;
    await this.held;
    this.waiting -= 1;
    if (signal?.aborted === true) this.givenUp += 1;
  }

  async #pass<T>(send: () => Promise<T>): Promise<T> {
    if (this.state === 'cut') throw new ApiError(0, 'Unreachable', 'cut');
    if (this.state === 'refused') throw new ApiError(403, 'Forbidden', 'leases is forbidden');
    const answer = await send();
    await clock.sleep(this.answersAfterMs, new AbortController().signal);
    if (this.state === 'loses-answers') throw new ApiError(0, 'Unreachable', 'answer lost');
    return answer;
  }
}

function clientFor(ns: string, through?: string): HttpLeaseClient {
  const endpoint = adminEndpoint(connect(), through);
  const transport = new Transport({ endpoint, clock, userAgent: 'test' });
  leftOpen.push(() => transport.close());
  return new HttpLeaseClient({ transport, namespace: ns });
}

function candidate(ns: string, identity: string, timing: LeaseTiming = OFTEN, client = clientFor(ns)) {
  const wire = new Wire(client);
  const fence = new LeaseFence({ clock, renewDeadlineMs: timing.renewDeadlineMs });
  const lost: string[] = [];
  const announced: string[] = [];
  const logged: (LogFields & { readonly message: string })[] = [];
  const tell = (fields: LogFields, message: string) => void logged.push({ ...fields, message });
  const elector = new Elector({
    name: LEASE,
    identity,
    leases: wire,
    timing,
    clock,
    log: { ...silentLogger, info: tell, warn: tell },
    metrics: leaderMetrics(new Registry()),
    fence,
    lost: (reason) => lost.push(reason),
    announce: (_lease, message) => announced.push(message),
  });
  leftOpen.push(() => elector.release(async () => undefined));
  const stop = new AbortController();
  leftOpen.push(async () => stop.abort(new Error('test ended')));
  return { elector, fence, wire, lost, announced, logged, stop, acquire: () => elector.acquire(stop.signal) };
}

function statesOf({ elector, fence }: ReturnType<typeof candidate>) {
  const { isLeading, isSuspended } = elector;
  return { isLeading, isSuspended, remainingMs: fence.remainingMs };
}

async function releasedByAnother(ns: string): Promise<void> {
  const client = clientFor(ns);
  const lease = await client.get(LEASE);
  const taken = await client.replace(takenLease(lease, 'another', 2, SHORT, clock.now()));
  await client.replace(releasedLease(taken, clock.now()));
}

/** As if etcd had been restored to a time before the last renewals. */
async function setBack(ns: string): Promise<void> {
  const client = clientFor(ns);
  const lease = await client.get(LEASE);
  const { acquireTime: renewTime = '' } = lease.spec ?? {};
  await client.replace({ ...lease, spec: { ...lease.spec, renewTime } });
}

async function deleted(ns: string): Promise<void> {
  const api = connect().api();
  await api.send('DELETE', `/apis/coordination.k8s.io/v1/namespaces/${ns}/leases/${LEASE}`);
  await api.close();
}

/** Stands by for the Lease; a test that ends meanwhile is no failure. */
function standBy(c: ReturnType<typeof candidate>): { tookAtMs: number | undefined } {
  const standing: { tookAtMs: number | undefined } = { tookAtMs: undefined };
  void (async () => {
    await c.acquire().catch(() => undefined);
    if (c.elector.isLeading) standing.tookAtMs = clock.monotonicMs();
  })();
  return standing;
}

describe('leader election', () => {
  test('one of several candidates leads, under a Lease as the original writes it', async () => {
    await using ns = await namespace();
    const candidates = ['a', 'b', 'c'].map((identity) => candidate(ns.name, identity));

    for (const c of candidates) standBy(c);
    const leader = await eventually(() => {
      const leading = candidates.find((c) => c.elector.isLeading);
      if (leading === undefined) throw new Error('nobody leads');
      return leading;
    });
    await eventually(() => leader.wire.renewals >= 3);

    const lease = await clientFor(ns.name).get(LEASE);
    expect(candidates.filter((c) => c.fence.remainingMs > 0)).toEqual([leader]);
    expect(leader.announced).toEqual([`${lease.spec?.holderIdentity} became leader`]);
    expect(leader.fence.token).toBe(1n);
    expect(lease.spec).toEqual({
      holderIdentity: leader.elector.holder,
      leaseDurationSeconds: 30,
      leaseTransitions: 1,
      acquireTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
      renewTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
    });
  });

  test('a released Lease is taken by the one who stands by at once, not with its next attempt', async () => {
    await using ns = await namespace();
    const patient: LeaseTiming = { leaseDurationMs: 180_000, renewDeadlineMs: 150_000, retryPeriodMs: 60_000 };
    const first = candidate(ns.name, 'first', patient);
    const second = candidate(ns.name, 'second', patient);
    await first.acquire();
    const standing = standBy(second);
    await eventually(() => second.elector.holder === 'first');

    const releasedAtMs = clock.monotonicMs();
    await first.elector.release(async () => undefined);
    await eventually(() => second.elector.isLeading);

    expect((standing.tookAtMs ?? Infinity) - releasedAtMs).toBeLessThan(patient.retryPeriodMs / 2);
    expect(first.fence.remainingMs).toBe(0);
    expect(first.announced).toEqual(['first became leader', 'first stopped leading']);
    expect(first.lost).toEqual([]);
    expect(first.elector.ended).toBe('released the Lease');
    expect(second.elector.ended).toBeUndefined();
    expect(second.fence.token).toBe(2n);
  });

  test('who stands by says for whom, that the Lease cannot be reached, again and again, and that it can again', async () => {
    await using ns = await namespace();
    const first = candidate(ns.name, 'first');
    const second = candidate(ns.name, 'second');
    await first.acquire();
    standBy(second);
    await eventually(() => second.logged.length > 0);

    second.wire.state = 'cut';
    const warnings = () => second.logged.filter(({ message }) => message === 'could not read or acquire the Lease');
    await eventually(() => warnings().length >= 2, { timeoutMs: 120_000 });
    const during = second.elector.trouble;
    second.wire.state = 'up';
    await eventually(() => second.elector.trouble === undefined);

    expect(second.logged[0]).toMatchObject({ message: 'waiting for lease', lease: LEASE, holder: 'first' });
    expect(during?.why).toBe('cut');
    expect(warnings().map(({ failures }) => failures)).toEqual([3, 10]);
    expect(second.logged.at(-1)).toMatchObject({ message: 'the Lease is reachable again', lease: LEASE });
  });

  test.each([
    { what: 'and is answered', state: 'up' },
    { what: 'and whose answer is lost', state: 'loses-answers' },
  ] as const)('a Lease whose taking is under way when we are told to stop, $what, is released', async ({ state }) => {
    await using ns = await namespace();
    const c = candidate(ns.name, 'c', DEFAULTS);
    const sent = Promise.withResolvers<void>();
    c.wire.held = sent.promise;
    const acquiring = c.acquire().catch((err: unknown) => err);
    await eventually(() => c.wire.waiting === 1);

    c.stop.abort(new Error('told to stop'));
    c.wire.state = state;
    sent.resolve();
    const end = await acquiring;
    c.wire.state = 'up';
    await c.elector.release(async () => undefined);

    expect(end).toEqual(new Error('told to stop'));
    expect(c.wire.givenUp).toBe(0);
    expect((await clientFor(ns.name).get(LEASE)).spec).toMatchObject({ leaseDurationSeconds: 1, leaseTransitions: 1 });
    expect(c.fence.remainingMs).toBe(0);
  });

  test('one request for the Lease without an answer, and no half-open connection is used again', async () => {
    await using ns = await namespace();
    await using proxy = await FaultProxy.start(connect().url);
    const client = clientFor(ns.name, proxy.url);
    await client.create({ metadata: { name: LEASE } });
    await Promise.all([client.get(LEASE), client.get(LEASE)]); // as many connections as Leases ever use
    proxy.strand();

    // What the elector does: it gives a request up after half of the renew deadline.
    await expect(client.get(LEASE, { signal: AbortSignal.timeout(4_500), timeoutMs: 5_000 })).rejects.toThrow(
      /timeout|no answer/,
    );
    const [one, other] = await Promise.all([
      client.get(LEASE, { timeoutMs: 30_000 }),
      client.get(LEASE, { timeoutMs: 30_000 }),
    ]);

    expect(one).toEqual(other);
  });

  test('a Lease is not released, and is renewed, until the last mutation has ended', async () => {
    await using ns = await namespace();
    const leader = candidate(ns.name, 'leader');
    await leader.acquire();
    const mutation = Promise.withResolvers<void>();

    const releasing = leader.elector.release(() => mutation.promise);
    const before = leader.wire.renewals;
    await eventually(() => leader.wire.renewals >= before + 3);
    const held = await clientFor(ns.name).get(LEASE);
    const wasOpen = leader.fence.remainingMs > 0;
    mutation.resolve();
    await releasing;
    const released = await clientFor(ns.name).get(LEASE);

    expect(held.spec?.holderIdentity).toBe('leader');
    expect(wasOpen).toBe(true);
    expect(released.spec).toMatchObject({ leaseDurationSeconds: 1, leaseTransitions: 1 });
    expect(released.spec?.holderIdentity ?? '').toBe('');
  });

  test('a leader that is cut off stops before another starts', async () => {
    await using ns = await namespace();
    const first = candidate(ns.name, 'first', SHORT);
    const second = candidate(ns.name, 'second', SHORT);
    await first.acquire();
    standBy(second);
    let bothOpen = false;

    first.wire.state = 'cut';
    await eventually(
      () => {
        bothOpen ||= first.fence.remainingMs > 0 && second.fence.remainingMs > 0;
        return second.elector.isLeading;
      },
      { intervalMs: 5 },
    );

    const before = { ...statesOf(first), isLost: first.lost.length > 0 };
    first.wire.state = 'up';
    await eventually(() => first.lost.length === 1);

    expect(bothOpen).toBe(false);
    expect(before).toEqual({ isLeading: false, isSuspended: true, remainingMs: 0, isLost: false });
    expect(first.elector.ended).toBe(
      'lost leadership: the Lease was written by another process while leadership was suspended',
    );
    expect(first.announced).toContain('first stopped leading');
    expect(statesOf(first)).toEqual({ isLeading: false, isSuspended: false, remainingMs: 0 });
    expect(second.elector.isLeading).toBe(true);
  });

  test.each([
    { what: 'an API server that is away', state: 'cut' },
    { what: 'answers that are lost', state: 'loses-answers' },
  ] as const)(
    'a lone leader leads on, under a higher token, after $what for longer than its renew deadline',
    async ({ state }) => {
      await using ns = await namespace();
      const leader = candidate(ns.name, 'leader', UNHURRIED);
      await leader.acquire();
      leader.wire.state = state;
      await eventually(() => leader.elector.isSuspended);
      const during = { ...statesOf(leader), lease: leader.elector.lease, why: leader.elector.trouble?.why };
      const renewals = leader.wire.renewals;
      await eventually(() => leader.wire.renewals >= renewals + 3);

      leader.wire.state = 'up';
      await eventually(() => leader.elector.isLeading);

      // On a slow host, the time for a renewal is over before its answer is lost.
      const why = expect.stringMatching(state === 'cut' ? /^cut$/ : /^answer lost$|: no response within \d+ ms$/);
      expect(during).toEqual({ isLeading: false, isSuspended: true, remainingMs: 0, lease: undefined, why });
      expect(statesOf(leader)).toMatchObject({ isLeading: true, isSuspended: false });
      expect(leader.fence.remainingMs).toBeGreaterThan(0);
      expect(leader.fence.token).toBeGreaterThan(1n);
      expect(BigInt((await clientFor(ns.name).get(LEASE)).spec?.leaseTransitions ?? 0)).toBe(leader.fence.token);
      expect(leader.lost).toEqual([]);
      expect(leader.elector.trouble).toBeUndefined();
      expect(leader.announced).toEqual([
        'leader became leader',
        'leader resumed leading, which was suspended while the API server was unreachable',
      ]);
      const renewed = leader.wire.renewals;
      await eventually(() => leader.wire.renewals >= renewed + 3);
      expect(statesOf(leader)).toMatchObject({ isLeading: true, isSuspended: false });
    },
  );

  test.each([
    { what: 'taken and released by another', write: releasedByAnother },
    { what: 'deleted', write: deleted },
  ])('a suspended leader whose Lease was $what meanwhile does not lead again', async ({ write }) => {
    await using ns = await namespace();
    const leader = candidate(ns.name, 'leader', SHORT);
    await leader.acquire();
    leader.wire.state = 'cut';
    await eventually(() => leader.elector.isSuspended);

    await write(ns.name);
    leader.wire.state = 'up';
    await eventually(() => leader.lost.length === 1);

    expect(statesOf(leader)).toEqual({ isLeading: false, isSuspended: false, remainingMs: 0 });
    expect(leader.elector.ended).toMatch(/^lost leadership: the Lease was written by another process/);
  });

  test('a suspended leader whose Lease was set back waits for the lease duration before it leads again', async () => {
    await using ns = await namespace();
    const leader = candidate(ns.name, 'leader', SHORT);
    await leader.acquire();
    const renewals = leader.wire.renewals;
    await eventually(() => leader.wire.renewals >= renewals + 2);
    leader.wire.state = 'cut';
    await eventually(() => leader.elector.isSuspended);

    await setBack(ns.name);
    const backAtMs = clock.monotonicMs();
    leader.wire.state = 'up';
    await eventually(() => leader.elector.isLeading);

    expect(clock.monotonicMs() - backAtMs).toBeGreaterThanOrEqual(SHORT.leaseDurationMs);
    expect(leader.fence.token).toBe(2n);
    expect(leader.lost).toEqual([]);
  });

  test('a label on the Lease of a suspended leader costs it no time', async () => {
    await using ns = await namespace();
    const timing: LeaseTiming = { leaseDurationMs: 600_000, renewDeadlineMs: 2_000, retryPeriodMs: 300 };
    const leader = candidate(ns.name, 'leader', timing);
    await leader.acquire();
    leader.wire.state = 'cut';
    await eventually(() => leader.elector.isSuspended);

    const client = clientFor(ns.name);
    const lease = await client.get(LEASE);
    await client.replace({ ...lease, metadata: { ...lease.metadata, labels: { team: 'a' } } });
    leader.wire.state = 'up';
    await eventually(() => leader.elector.isLeading);

    expect(leader.lost).toEqual([]);
  });

  test('a suspended leader that is refused does not lead again, but not for the first refusals of a server that starts', async () => {
    await using ns = await namespace();
    const leader = candidate(ns.name, 'leader', SHORT);
    await leader.acquire();
    leader.wire.state = 'cut';
    await eventually(() => leader.elector.isSuspended);

    const refusedAtMs = clock.monotonicMs();
    leader.wire.state = 'refused';
    await eventually(() => leader.lost.length === 1);

    expect(clock.monotonicMs() - refusedAtMs).toBeGreaterThanOrEqual(REFUSAL_PATIENCE_MS);
    expect(leader.lost).toEqual([
      'leadership of machine-controller was lost: the Lease could not be renewed: leases is forbidden',
    ]);
  });

  test('a suspended leader that is told to stop gives its Lease up if it can be reached', async () => {
    await using ns = await namespace();
    const leader = candidate(ns.name, 'leader', SHORT);
    await leader.acquire();
    leader.wire.state = 'cut';
    await eventually(() => leader.elector.isSuspended);
    const mutation = Promise.withResolvers<void>();

    const releasing = leader.elector.release(() => mutation.promise);
    leader.wire.state = 'up';
    mutation.resolve();
    await releasing;

    expect(leader.elector.ended).toBe('released the Lease');
    expect(leader.lost).toEqual([]);
    expect(statesOf(leader)).toEqual({ isLeading: false, isSuspended: false, remainingMs: 0 });
    expect((await clientFor(ns.name).get(LEASE)).spec?.holderIdentity ?? '').toBe('');
  });

  test('a leader that may not renew its Lease any more ends with the words of the API server, not with older ones', async () => {
    await using ns = await namespace();
    // Time enough for both: while the API server is away leadership is suspended, not lost.
    const timing: LeaseTiming = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 300 };
    const leader = candidate(ns.name, 'leader', timing);
    await leader.acquire();

    leader.wire.state = 'cut';
    await eventually(() => leader.wire.renewals >= 2, { intervalMs: 5 });
    leader.wire.state = 'refused';
    await eventually(() => leader.lost.length === 1);

    expect(leader.lost).toEqual([
      'leadership of machine-controller was lost: the Lease could not be renewed: leases is forbidden',
    ]);
  });

  test('a leader that is refused by a server that has just started, when its time is over, is suspended and leads on', async () => {
    await using ns = await namespace();
    const leader = candidate(ns.name, 'leader', SHORT);
    await leader.acquire();
    leader.wire.state = 'cut';
    await eventually(() => leader.wire.renewals >= 2, { intervalMs: 5 });
    leader.wire.state = 'refused';
    await eventually(() => leader.elector.isSuspended || leader.lost.length > 0);

    leader.wire.state = 'up';
    await eventually(() => leader.elector.isLeading || leader.lost.length > 0);

    expect(leader.lost).toEqual([]);
    expect(leader.elector.isLeading).toBe(true);
  });

  test('lost answers cost nothing as long as some come back in time', async () => {
    await using ns = await namespace();
    const leader = candidate(ns.name, 'leader');
    await leader.acquire();

    for (let i = 0; i < 3; i++) {
      const before = leader.wire.renewals;
      leader.wire.state = 'loses-answers';
      await eventually(() => leader.wire.renewals >= before + 2);
      const left = leader.fence.remainingMs;
      leader.wire.state = 'up';
      await eventually(() => leader.fence.remainingMs > left);
    }

    expect(leader.lost).toEqual([]);
    expect(leader.fence.token).toBe(1n);
  });

  test('a server that takes more than a third of the renew deadline for each answer costs no leadership', async () => {
    await using ns = await namespace();
    const timing: LeaseTiming = { leaseDurationMs: 27_000, renewDeadlineMs: 18_000, retryPeriodMs: 7_200 };
    const leader = candidate(ns.name, 'leader', timing);
    leader.wire.answersAfterMs = 6_600;

    await leader.acquire();
    await eventually(() => leader.wire.renewals === 3 || leader.lost.length > 0, { timeoutMs: 120_000 });

    expect(leader.lost).toEqual([]);
    expect(leader.fence.remainingMs).toBeGreaterThan(0);
  });

  test('a candidate whose winning answer was lost goes on under the token that it won', async () => {
    await using ns = await namespace();
    const c = candidate(ns.name, 'c');
    c.wire.state = 'loses-answers';

    standBy(c);
    await eventually(async () => (await clientFor(ns.name).get(LEASE)).spec?.holderIdentity === 'c');
    c.wire.state = 'up';
    await eventually(() => c.elector.isLeading);

    expect(c.fence.token).toBe(1n);
  });

  test('a leader whose Lease somebody else took stops at its next renewal', async () => {
    await using ns = await namespace();
    const leader = candidate(ns.name, 'leader');
    await leader.acquire();
    const client = clientFor(ns.name);

    await eventually(async () => {
      const lease = await client.get(LEASE);
      return client.replace(takenLease(lease, 'thief', 2, OFTEN, clock.now()));
    });
    await eventually(() => leader.lost.length === 1);

    expect(leader.elector.ended).toBe('lost leadership: the Lease is held by another process');
    expect(leader.fence.remainingMs).toBe(0);
  });

  test('a deleted Lease is made again by its leader, not taken by another, and its token rises', async () => {
    await using ns = await namespace();
    const leader = candidate(ns.name, 'leader');
    const other = candidate(ns.name, 'other');
    await leader.acquire();
    standBy(other);
    await eventually(() => other.elector.holder === 'leader');

    const answer = await deleteLease(ns.name);
    await eventually(() => leader.fence.token === 2n);

    expect(answer).toBe(200);
    expect(leader.lost).toEqual([]);
    expect(other.elector.isLeading).toBe(false);
    expect((await clientFor(ns.name).get(LEASE)).spec?.holderIdentity).toBe('leader');
  });

  describe('whose drivers have seen a higher token, because the Lease was set back', () => {
    test('a leader raises the count of its Lease above it, and acts under it from then on', async () => {
      await using ns = await namespace();
      const leader = candidate(ns.name, 'leader');
      await leader.acquire();

      const answers = await Promise.all([leader.elector.raiseAbove(41n), leader.elector.raiseAbove(7n)]);
      const token = leader.fence.token;
      const before = leader.wire.renewals;
      await eventually(() => leader.wire.renewals >= before + 3);
      const { spec } = await clientFor(ns.name).get(LEASE);

      expect(answers).toEqual([undefined, undefined]);
      expect(token).toBe(42n);
      expect(leader.fence.token).toBe(42n);
      expect(spec).toMatchObject({ holderIdentity: 'leader', leaseTransitions: 42 });
      const raises = leader.announced.filter((message) => message.endsWith(', because the Lease had been reset'));
      // Each asks the server first: which of both is answered first is left to chance.
      expect([['1 to 42'], ['1 to 8', '8 to 42']]).toContainEqual(raises.map((raise) => /from (.*),/.exec(raise)?.[1]));
      expect(leader.lost).toEqual([]);
    });

    test('its successor has a token above that', async () => {
      await using ns = await namespace();
      const leader = candidate(ns.name, 'leader');
      await leader.acquire();
      await leader.elector.raiseAbove(41n);
      await leader.elector.release(async () => undefined);
      const next = candidate(ns.name, 'next');

      await next.acquire();

      expect(next.fence.token).toBe(43n);
    });

    test('a leader that does not know yet that it was replaced raises nothing', async () => {
      await using ns = await namespace();
      const leader = candidate(ns.name, 'leader', RARE);
      await leader.acquire();
      const client = clientFor(ns.name);
      await client.replace(takenLease(await client.get(LEASE), 'next', 2, RARE, clock.now()));

      const answer = await leader.elector.raiseAbove(2n);

      expect(leader.lost).toEqual([]);
      expect(answer).toBe('the Lease is held by another process');
      expect((await client.get(LEASE)).spec).toMatchObject({ holderIdentity: 'next', leaseTransitions: 2 });
    });

    test('a leader that is replaced while it raises the count fails to, and loses the Lease', async () => {
      await using ns = await namespace();
      const leader = candidate(ns.name, 'leader', RARE);
      await leader.acquire();
      const client = clientFor(ns.name);
      const sent = Promise.withResolvers<void>();
      leader.wire.held = sent.promise;

      const raising = leader.elector.raiseAbove(2n);
      await eventually(() => leader.wire.waiting === 1);
      await client.replace(takenLease(await client.get(LEASE), 'next', 2, RARE, clock.now()));
      sent.resolve();

      expect(await raising).toBe('the Lease is held by another process');
      expect(leader.lost).toHaveLength(1);
      expect(leader.fence.token).toBe(1n);
      expect((await client.get(LEASE)).spec).toMatchObject({ holderIdentity: 'next', leaseTransitions: 2 });
    });

    test('a leader that cannot reach the Lease raises nothing', async () => {
      await using ns = await namespace();
      const leader = candidate(ns.name, 'leader', RARE);
      await leader.acquire();
      leader.wire.state = 'cut';

      const answer = await leader.elector.raiseAbove(2n);
      leader.wire.state = 'up';

      expect(answer).toBe('the Lease could not be read: cut');
      expect((await clientFor(ns.name).get(LEASE)).spec?.leaseTransitions).toBe(1);
    });

    test('a count that leaves no room for further leaders is not believed', async () => {
      await using ns = await namespace();
      const leader = candidate(ns.name, 'leader');
      await leader.acquire();

      const answer = await leader.elector.raiseAbove(2n ** 31n - 2n);

      expect(answer).toMatch(/^the Lease is not raised above 1073741824;/);
      expect((await clientFor(ns.name).get(LEASE)).spec?.leaseTransitions).toBe(1);
    });

    test('a count that somebody raises by hand is the token from the next renewal on', async () => {
      await using ns = await namespace();
      const leader = candidate(ns.name, 'leader');
      await leader.acquire();
      const client = clientFor(ns.name);

      await eventually(async () => {
        const lease = await client.get(LEASE);
        return client.replace({ ...lease, spec: { ...lease.spec, leaseTransitions: 42 } });
      });
      await eventually(() => leader.fence.token === 42n);

      expect(leader.lost).toEqual([]);
    });

    test('a Lease that goes back under its leader is raised again to where it was', async () => {
      await using ns = await namespace();
      const leader = candidate(ns.name, 'leader');
      await leader.acquire();
      await leader.elector.raiseAbove(41n);
      const client = clientFor(ns.name);

      await eventually(async () => {
        const lease = await client.get(LEASE);
        return client.replace({ ...lease, spec: { ...lease.spec, leaseTransitions: 1 } });
      });
      await eventually(async () => (await client.get(LEASE)).spec?.leaseTransitions === 42);

      expect(leader.fence.token).toBe(42n);
      expect(leader.lost).toEqual([]);
    });
  });

  test('a label on the Lease disturbs nobody', async () => {
    await using ns = await namespace();
    const leader = candidate(ns.name, 'leader');
    await leader.acquire();
    const client = clientFor(ns.name);

    await eventually(async () => {
      const lease = await client.get(LEASE);
      return client.replace({ ...lease, metadata: { ...lease.metadata, labels: { a: 'b' } } });
    });
    const before = leader.wire.renewals;
    await eventually(() => leader.wire.renewals >= before + 4);

    const lease = await client.get(LEASE);
    expect(leader.lost).toEqual([]);
    expect(lease.metadata.labels).toEqual({ a: 'b' });
  });

  test('a Lease that the original released can be taken', async () => {
    await using ns = await namespace();
    const client = clientFor(ns.name);
    const created = await client.create({
      metadata: { name: LEASE },
      spec: { holderIdentity: 'go', leaseDurationSeconds: 15, leaseTransitions: 41 },
    });
    await client.replace(releasedLease(created, clock.now()));
    const c = candidate(ns.name, 'c');

    await c.acquire();

    expect(c.fence.token).toBe(42n);
  });
});

async function deleteLease(ns: string): Promise<number> {
  const api = connect().api();
  try {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${ns}/leases/${LEASE}`;
    return (await api.request(path, { method: 'DELETE' })).status;
  } finally {
    await api.close();
  }
}
