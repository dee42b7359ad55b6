import { afterEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { MINUTE, SECOND } from '../../../test/durations.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { gateMetrics } from '../../base/metrics/gate.ts';
import type { ProbedCluster } from './outage-detector.ts';
import { OpenFence } from './fence.ts';
import { Outages } from './outages.ts';
import { CONTROL, GateClosedError } from './gate.ts';
import { LeaderGate } from './leader-gate.ts';
import { describeBlockingOutages, type OutageChange, type Outage, ServerAheadError, SetBackError } from './outage.ts';

const never = new AbortController().signal;

/** A cluster that can be doubted and set back. */
class DoubtfulCluster implements ProbedCluster {
  readonly cluster = CONTROL;
  isInDoubt = false;
  isSettled = true;
  isReachable = true;
  wasSetBack = false;
  isRead = true;
  /** What happens while all of it is read. */
  whileRead: () => Promise<void> = () => Promise.resolve();
  probes = 0;
  readonly caughtUp: Outage[] = [];
  #listener: Parameters<NonNullable<ProbedCluster['listen']>>[0] | undefined;
  #settled = Promise.withResolvers<void>();

  listen(listener: Parameters<NonNullable<ProbedCluster['listen']>>[0]): void {
    this.#listener = listener;
  }

  async probe(): Promise<void> {
    this.probes += 1;
    if (!this.isReachable) throw new Error('connection refused');
    if (this.wasSetBack) throw new SetBackError('at 20, was at 40');
    if (this.isInDoubt) this.settle();
  }

  looks = 0;
  /** What a look at its history ends with. */
  lookFailure: Error | undefined;

  async requireHistory(): Promise<void> {
    this.looks += 1;
    if (this.lookFailure !== undefined) throw this.lookFailure;
  }

  async catchUp(_signal: AbortSignal, outage: Outage): Promise<void> {
    this.caughtUp.push(outage);
    if (!this.isRead) throw new Error('list failed');
    await this.whileRead();
    this.wasSetBack = false;
  }

  async untilSettled(signal: AbortSignal): Promise<void> {
    const aborted = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
    await Promise.race([this.#settled.promise, aborted]);
  }

  doubt(): void {
    this.isInDoubt = true;
    this.isSettled = false;
    this.#settled = Promise.withResolvers<void>();
    this.#listener?.doubted();
  }

  settle(): void {
    this.isInDoubt = false;
    this.isSettled = true;
    this.#settled.resolve();
  }

  /** Nothing is in doubt any more, but something cannot be read anew. */
  giveUp(): void {
    this.settle();
    this.isSettled = false;
  }

  showSetBack(): void {
    this.#listener?.setBack('machines "m-1" is at resourceVersion 20 again');
  }
}

let stop: () => Promise<void> = () => Promise.resolve();
afterEach(() => stop());

async function start() {
  const clock = new FakeClock();
  const metrics = gateMetrics(new Registry());
  const outages = new Outages({ clock, log: silentLogger, metrics, periodMs: 60 * SECOND, timeoutMs: 30 * SECOND });
  stop = () => outages.stop();
  const cluster = new DoubtfulCluster();
  outages.add(cluster);
  const changes: OutageChange[] = [];
  outages.onChange((change) => void changes.push(change));
  const gate = new LeaderGate({ clock, fence: new OpenFence({ clock }), outages, metrics, graceMs: 0 });
  const admit = (intent: 'report' | 'create' | 'change' | 'destroy'): Promise<string> =>
    gate.admit(intent, [CONTROL], never).then(
      () => 'admitted',
      (err: unknown) => (err instanceof GateClosedError ? err.reason : String(err)),
    );
  await clock.advanceAsync(1);
  return { clock, outages, cluster, changes, gate, admit };
}

describe('a cluster that was set back', () => {
  test('has an outage from the probe that finds it until all of it was read again', async () => {
    const { clock, cluster, changes, admit } = await start();
    cluster.isRead = false;
    cluster.wasSetBack = true;

    await clock.advanceAsync(60 * SECOND);
    expect([await admit('create'), await admit('destroy'), await admit('report')]).toEqual([
      'outage',
      'outage',
      'admitted',
    ]);
    cluster.isRead = true;
    await clock.advanceAsync(3 * SECOND);

    expect(await admit('destroy')).toBe('admitted');
    expect(changes).toMatchObject([
      { isOver: false, isSetBack: true, why: 'at 20, was at 40' },
      { isOver: true, isSetBack: true },
    ]);
    expect(cluster.caughtUp.every(({ isSetBack }) => isSetBack)).toBe(true);
  });

  test.each([
    { takes: 4 * MINUTE, attempts: 1 },
    { takes: 6 * MINUTE, attempts: 2 },
  ])('may take minutes to be read: nothing of an attempt that is broken off is kept ($takes ms)', async (given) => {
    const { clock, cluster, admit } = await start();
    cluster.whileRead = () => clock.sleep(given.takes, never);
    cluster.showSetBack();

    await clock.advanceAsync(given.takes + SECOND);

    expect(cluster.caughtUp).toHaveLength(given.attempts);
    expect(await admit('change')).toBe(given.attempts === 1 ? 'admitted' : 'outage');
  });

  test('has an outage at once by whatever else shows it', async () => {
    const { clock, cluster, changes, admit } = await start();
    cluster.isRead = false;

    cluster.showSetBack();

    expect(await admit('change')).toBe('outage');
    cluster.isRead = true;
    await clock.advanceAsync(3 * SECOND);
    expect(await admit('change')).toBe('admitted');
    expect(changes).toMatchObject([{ why: 'machines "m-1" is at resourceVersion 20 again' }, { isOver: true }]);
  });

  test('during an outage keeps it, is reported too, and is read again', async () => {
    const { clock, cluster, changes } = await start();
    cluster.isReachable = false;
    await clock.advanceAsync(100 * SECOND);

    cluster.wasSetBack = true;
    cluster.isReachable = true;
    await clock.advanceAsync(3 * SECOND);

    expect(changes.map(({ isOver, isSetBack }) => [isOver, isSetBack])).toEqual([
      [false, undefined],
      [false, true],
      [true, true],
    ]);
    expect(cluster.caughtUp).toHaveLength(1);
  });

  test.each([
    { by: 'what is read then', show: () => Promise.reject(new SetBackError('nodes are at 20')) },
    { by: 'a watch', show: (cluster: DoubtfulCluster) => Promise.resolve(cluster.showSetBack()) },
  ])('while it is caught up with after an outage, as $by shows, is read anew', async ({ show }) => {
    const { clock, cluster, changes } = await start();
    cluster.isReachable = false;
    await clock.advanceAsync(100 * SECOND);
    cluster.whileRead = () => {
      cluster.whileRead = () => Promise.resolve();
      return show(cluster);
    };

    cluster.isReachable = true;
    await clock.advanceAsync(5 * SECOND);

    expect(changes.map(({ isOver, isSetBack }) => [isOver, isSetBack])).toEqual([
      [false, undefined],
      [false, true],
      [true, true],
    ]);
    expect(cluster.caughtUp.map(({ isSetBack }) => isSetBack)).toEqual([undefined, true]);
  });
});

describe('a cluster that was set back while its API server went on', () => {
  test('keeps the outage, and says once what helps', async () => {
    const { clock, outages, cluster, changes, admit } = await start();
    cluster.whileRead = () => Promise.reject(new ServerAheadError('lists show machines "m-1" differently from etcd'));
    cluster.showSetBack();

    await clock.advanceAsync(60 * SECOND);
    expect(await admit('create')).toBe('outage');
    expect(changes.map(({ isOver, isServerAhead }) => [isOver, isServerAhead])).toEqual([
      [false, undefined],
      [false, true],
    ]);
    expect(describeBlockingOutages(outages.current())).toContain('restart its API servers');
    // At first after 0.5 s, then each 2 s.
    expect(cluster.caughtUp.length).toBeLessThan(35);

    cluster.whileRead = () => Promise.resolve();
    await clock.advanceAsync(3 * SECOND);
    expect(changes.at(-1)).toMatchObject({ isOver: true, isSetBack: true });
  });

  test('is found before anything is destroyed, and nothing is', async () => {
    const { cluster, changes, admit } = await start();
    cluster.isRead = false;
    cluster.lookFailure = new SetBackError('etcd knows nothing of it');

    expect([await admit('change'), changes]).toEqual(['admitted', []]);
    expect(await admit('destroy')).toBe('unproven');
    expect(changes).toMatchObject([{ isOver: false, why: 'etcd knows nothing of it' }]);
  });

  test('nothing is destroyed while that cannot be told; no outage begins', async () => {
    const { cluster, changes, admit } = await start();
    cluster.lookFailure = new Error('no answer');

    expect([await admit('destroy'), changes]).toEqual(['unproven', []]);
    cluster.lookFailure = undefined;
    expect(await admit('destroy')).toBe('admitted');
  });

  test('is looked for once by what is destroyed within 2 s', async () => {
    const { clock, cluster, admit } = await start();

    await Promise.all(Array.from({ length: 50 }, () => admit('destroy')));
    await clock.advanceAsync(1_999);
    await admit('destroy');
    expect(cluster.looks).toBe(1);
    await clock.advanceAsync(1);
    await admit('destroy');
    expect(cluster.looks).toBe(2);
  });
});

describe('a cluster in doubt', () => {
  test('is probed at once, and what is to be written waits for it', async () => {
    const { clock, cluster, admit } = await start();
    const { probes } = cluster;

    cluster.doubt();
    const admitted = admit('create');
    await clock.advanceAsync(1);

    expect(await admitted).toBe('admitted');
    expect(cluster.probes).toBe(probes + 1);
  });

  test('is refused whatever changes it, after a while, and asked again and again', async () => {
    const { clock, cluster, admit } = await start();
    cluster.isReachable = false;
    const { probes } = cluster;

    cluster.doubt();
    const refused = Promise.all([admit('create'), admit('destroy'), admit('report')]);
    await clock.advanceAsync(6 * SECOND);

    expect(await refused).toEqual(['unproven', 'unproven', 'admitted']);
    // At 0, 0.5, 1.5, 3.5, 5.5 s; then each 2 s.
    expect(cluster.probes - probes).toBe(5);
    await clock.advanceAsync(6 * SECOND);
    expect(cluster.probes - probes).toBe(8);
  });

  test('stays so while what has to be read anew has not been, although it answers', async () => {
    const { clock, cluster, admit } = await start();
    cluster.isSettled = false;

    const refused = admit('change');
    await clock.advanceAsync(6 * SECOND);

    expect(await refused).toBe('unproven');
  });

  test('is refused whatever changes it at once when no waiting would settle it', async () => {
    const { cluster, admit } = await start();
    cluster.doubt();
    cluster.giveUp();

    expect([await admit('create'), await admit('destroy'), await admit('report')]).toEqual([
      'unproven',
      'unproven',
      'admitted',
    ]);
  });
});

test('time in which a cluster did not answer, or a watch had stalled, was without sight', async () => {
  const { clock, outages, cluster, gate } = await start();
  await clock.advanceAsync(9 * SECOND);
  const sinceMs = clock.monotonicMs();
  outages.wasBlind(CONTROL, { fromMs: sinceMs, toMs: sinceMs + 4 * SECOND });
  await clock.advanceAsync(10 * SECOND);
  expect(gate.blindMs([CONTROL], sinceMs)).toBe(4 * SECOND);

  cluster.isReachable = false;
  await clock.advanceAsync(100 * SECOND);
  const during = gate.blindMs([CONTROL], sinceMs);
  cluster.isReachable = true;
  await clock.advanceAsync(10 * SECOND);
  const afterwards = gate.blindMs([CONTROL], sinceMs);

  expect(during).toBeGreaterThan(50 * SECOND);
  expect(afterwards).toBeGreaterThanOrEqual(during);
  await clock.advanceAsync(10 * SECOND);
  expect(gate.blindMs([CONTROL], sinceMs)).toBe(afterwards);
});
