import { readFileSync } from 'node:fs';

import { afterEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { MINUTE, SECOND } from '../../../test/durations.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { instantOf } from '../../base/clock/host-clock.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { gateMetrics } from '../../base/metrics/gate.ts';
import { LeaseFence } from './fence.ts';
import { Outages } from './outages.ts';
import { CONTROL, GateClosedError } from './gate.ts';
import { LeaderGate } from './leader-gate.ts';
import type { OutageChange } from './outage.ts';

const TIMEOUT = 30 * SECOND;
const PERIOD = MINUTE;
const never = new AbortController().signal;

/** A cluster that answers, fails or hangs as told, and counts its probes. */
class TestCluster {
  up: boolean | 'hangs' = true;
  canCatchUp = true;
  probes = 0;
  catchUps = 0;
  readonly cluster: string;

  constructor(cluster: string) {
    this.cluster = cluster;
  }

  async probe(): Promise<void> {
    this.probes += 1;
    if (this.up === 'hangs') return new Promise(() => undefined);
    if (!this.up) throw new Error('connection refused');
  }

  async catchUp(): Promise<void> {
    this.catchUps += 1;
    if (!this.canCatchUp) throw new Error('list failed');
  }
}

let stop: () => Promise<void> = () => Promise.resolve();
afterEach(() => stop());

async function start({ targetUp = true }: { targetUp?: TestCluster['up'] } = {}) {
  const clock = new FakeClock();
  const registry = new Registry();
  const metrics = gateMetrics(registry);
  const outages = new Outages({ clock, log: silentLogger, metrics, periodMs: PERIOD, timeoutMs: TIMEOUT });
  stop = () => outages.stop();
  const control = new TestCluster(CONTROL);
  const target = new TestCluster('target');
  target.up = targetUp;
  outages.add(control);
  outages.add(target);
  const changes: string[] = [];
  const told: OutageChange[] = [];
  outages.onChange((change) => {
    told.push(change);
    changes.push(`${change.cluster} ${change.isOver ? 'answers' : 'outage'}`);
  });
  const fence = new LeaseFence({ clock, renewDeadlineMs: 10 * SECOND });
  fence.renewed(instantOf(clock), 3);
  // Leadership itself is not what most tests are about: renewed whenever time passes.
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= SECOND) {
      await clock.advanceAsync(Math.min(left, SECOND));
      fence.renewed(instantOf(clock), 3);
    }
  };
  await pass(1);
  const gate = new LeaderGate({ clock, fence, outages, metrics, graceMs: 2 * MINUTE });
  return { clock, registry, outages, control, target, changes, told, fence, gate, pass };
}

/** The reason of a refusal, or `admitted`. */
async function outcome(admission: Promise<unknown>): Promise<string> {
  try {
    await admission;
    return 'admitted';
  } catch (err) {
    if (err instanceof GateClosedError) return `${err.reason} ${err.cluster ?? ''}`.trim();
    throw err;
  }
}

const BOTH = [CONTROL, 'target'];

describe('admission', () => {
  test('hands out what is left of the fence and the fencing token', async () => {
    const { clock, gate } = await start();
    clock.advance(4 * SECOND);

    const admission = await gate.admit('destroy', BOTH, never);
    expect(admission).toMatchObject({ remainingMs: 6 * SECOND, fencingToken: 3n });
    expect(admission.leftMs?.()).toBe(6 * SECOND);
    clock.advance(6 * SECOND);
    expect(admission.leftMs?.()).toBe(0);
  });

  test('lasts while leadership is renewed, and not into the next one', async () => {
    const { clock, fence, gate } = await start();
    const admission = await gate.admit('change', BOTH, never);

    for (let i = 0; i < 3; i++) {
      clock.advance(9 * SECOND);
      fence.renewed(instantOf(clock), 3);
      expect(admission.leftMs?.()).toBe(10 * SECOND);
    }
    clock.advance(10 * SECOND);
    fence.renewed(instantOf(clock), 4);
    expect([admission.leftMs?.(), fence.remainingMs]).toEqual([0, 10 * SECOND]);
  });

  test.each(['report', 'create', 'change', 'destroy'] as const)(
    'refuses %s when the fence is closed',
    async (intent) => {
      const { clock, gate } = await start();

      clock.advance(10 * SECOND);

      expect(await outcome(gate.admit(intent, [CONTROL], never))).toBe('fenced');
    },
  );

  test.each([
    { intent: 'report', clusters: BOTH, want: 'admitted' },
    { intent: 'create', clusters: BOTH, want: 'outage target' },
    { intent: 'change', clusters: ['target'], want: 'outage target' },
    { intent: 'destroy', clusters: BOTH, want: 'outage target' },
    { intent: 'change', clusters: [CONTROL], want: 'admitted' },
    { intent: 'destroy', clusters: [CONTROL], want: 'admitted' },
  ] as const)('in an outage of the target, $intent on $clusters is $want', async ({ intent, clusters, want }) => {
    const { gate, target, pass } = await start();
    target.up = false;

    await pass(PERIOD + TIMEOUT + SECOND);

    expect(await outcome(gate.admit(intent, clusters, never))).toBe(want);
  });

  test.each([
    { intent: 'report', want: 'admitted' },
    { intent: 'create', want: 'outage control' },
    { intent: 'change', want: 'outage control' },
    { intent: 'destroy', want: 'outage control' },
  ] as const)(
    'in an outage of the control cluster, which says what for, $intent on the target is $want',
    async ({ intent, want }) => {
      const { gate, control, pass } = await start();
      control.up = false;

      await pass(PERIOD + TIMEOUT + SECOND);

      expect(await outcome(gate.admit(intent, ['target'], never))).toBe(want);
    },
  );

  test('refuses what concerns a cluster that is not probed, except reports', async () => {
    const { gate } = await start();

    expect(await outcome(gate.admit('change', ['other'], never))).toBe('unproven other');
    expect(await outcome(gate.admit('destroy', ['other'], never))).toBe('unproven other');
    expect(await outcome(gate.admit('report', ['other'], never))).toBe('admitted');
    await expect(gate.admit('change', ['other'], never)).rejects.toThrow('cluster other is not probed');
  });

  test('counts refusals by intent and reason', async () => {
    const { clock, gate, registry } = await start();
    clock.advance(MINUTE);

    await outcome(gate.admit('destroy', [CONTROL], never));

    expect(await registry.metrics()).toContain('machinist_gate_refusals_total{intent="destroy",reason="fenced"} 1');
  });
});

describe('proof of life', () => {
  test('a young one is enough: no probe', async () => {
    const { gate, control, pass } = await start();
    await pass(TIMEOUT - SECOND);
    const before = control.probes;

    await gate.admit('destroy', [CONTROL], never);

    expect(control.probes).toBe(before);
  });

  test('an old one makes a destroy probe first', async () => {
    const { gate, control, target, pass } = await start();
    await pass(TIMEOUT + SECOND);
    const before = control.probes;

    await gate.admit('destroy', [CONTROL], never);

    expect(control.probes).toBe(before + 1);
    expect(target.probes).toBe(1);
  });

  test('a watch event or bookmark is one', async () => {
    const { gate, control, outages, pass } = await start();
    await pass(TIMEOUT + SECOND);
    outages.sawLife(CONTROL);
    const before = control.probes;

    await gate.admit('destroy', [CONTROL], never);

    expect(control.probes).toBe(before);
  });

  test('when the cluster has just gone, a destroy is refused long before the outage', async () => {
    const { gate, target, outages, pass } = await start();
    await pass(TIMEOUT + SECOND);
    target.up = false;

    expect(await outcome(gate.admit('destroy', BOTH, never))).toBe('unproven target');
    expect(await outcome(gate.admit('change', BOTH, never))).toBe('admitted');
    expect(outages.state('target')?.outage).toBeUndefined();
  });

  test('when the control cluster has just gone, nothing is destroyed in the target either', async () => {
    const { gate, control, outages, pass } = await start();
    await pass(TIMEOUT + SECOND);
    outages.sawLife('target');
    control.up = false;

    expect(await outcome(gate.admit('destroy', ['target'], never))).toBe('unproven control');
    expect(await outcome(gate.admit('change', ['target'], never))).toBe('admitted');
  });

  test('a failed probe closes destroy at once, whatever the watches still deliver', async () => {
    const { gate, target, outages, pass } = await start();
    target.up = false;
    await pass(PERIOD);
    outages.sawLife('target');

    expect(await outcome(gate.admit('destroy', ['target'], never))).toBe('unproven target');
  });

  test('a hanging API server refuses after the deadline of the probe', async () => {
    const { gate, target, clock, pass } = await start();
    await pass(TIMEOUT + SECOND);
    target.up = 'hangs';
    const admission = outcome(gate.admit('destroy', ['target'], never));

    await clock.advanceAsync(10 * SECOND);

    expect(await admission).toMatch(/unproven|fenced/);
  });

  test('an answer proves life for when it was asked for', async () => {
    const { clock, outages, target, pass } = await start();
    await pass(PERIOD - 2 * SECOND);
    const answer = Promise.withResolvers<void>();
    target.probe = () => answer.promise;
    await pass(2 * SECOND);
    const sentMs = clock.monotonicMs();
    await pass(5 * SECOND);
    expect(outages.state('target')?.provenMs).toBeLessThan(sentMs - SECOND);

    answer.resolve();
    await pass(1);

    expect(outages.state('target')?.provenMs).toBeLessThanOrEqual(sentMs);
    expect(outages.state('target')?.provenMs).toBeGreaterThan(sentMs - SECOND);
  });

  test('many destroys share one probe', async () => {
    const { gate, target, pass } = await start();
    await pass(TIMEOUT + SECOND);
    const before = target.probes;

    await Promise.all(Array.from({ length: 500 }, () => gate.admit('destroy', ['target'], never)));

    expect(target.probes).toBe(before + 1);
  });

  test.each([
    { lost: 'leadership', want: 'fenced' },
    { lost: 'another cluster', want: 'unproven control' },
  ])('a destroy is refused when $lost was lost while it probed', async ({ lost, want }) => {
    const { clock, outages, gate, pass, target } = await start();
    await pass(TIMEOUT + SECOND);
    outages.sawLife(CONTROL);
    const answer = Promise.withResolvers<void>();
    target.probe = () => answer.promise;
    await clock.advanceAsync(4 * SECOND);

    const admission = outcome(gate.admit('destroy', BOTH, never));
    await clock.advanceAsync(1); // it probes
    if (lost === 'leadership') await clock.advanceAsync(7 * SECOND);
    else await outages.remove(CONTROL);
    answer.resolve();

    expect(await admission).toBe(want);
  });

  test('a destroy stops waiting for the probe when it is aborted', async () => {
    const { gate, target, pass } = await start();
    await pass(TIMEOUT + SECOND);
    target.up = 'hangs';
    const abort = new AbortController();
    const admission = gate.admit('destroy', ['target'], abort.signal);

    abort.abort(new Error('shutting down'));

    await expect(admission).rejects.toThrow('shutting down');
  });
});

describe('before the first answer to a probe', () => {
  test('nothing is destroyed, and what destroys waits for that answer', async () => {
    const { gate, target, outages, clock } = await start({ targetUp: 'hangs' });
    const admission = outcome(gate.admit('destroy', ['target'], never));
    const unknown = outages.state('target');

    await clock.advanceAsync(10 * SECOND);

    expect(unknown).toMatchObject({ outage: undefined, silentSinceMs: undefined, provenMs: undefined });
    expect(target.probes).toBe(1);
    expect(await admission).toMatch(/unproven|fenced/);
    expect(outages.state('target')?.outage).toBeDefined();
  });
});

describe('an outage', () => {
  test('happens when probes failed for the whole timeout, not before', async () => {
    const { target, changes, pass } = await start();
    target.up = false;

    await pass(PERIOD + TIMEOUT - SECOND);
    const before = [...changes];
    await pass(2 * SECOND);

    expect(before).toEqual([]);
    expect(changes).toEqual(['target outage']);
  });

  test('forgets the first failure at a good probe: two failures hours apart are no outage', async () => {
    const { target, changes, outages, pass } = await start();
    target.up = false;
    await pass(PERIOD);
    target.up = true;
    await pass(10 * MINUTE);
    target.up = false;
    await pass(20 * SECOND);

    expect(changes).toEqual([]);
    expect(outages.state('target')?.silentSinceMs).toBeGreaterThan(10 * MINUTE);
  });

  test('ends by itself at the first good probe, after catching up', async () => {
    const { target, changes, outages, gate, pass } = await start();
    target.up = false;
    await pass(30 * MINUTE);
    target.up = true;
    await pass(TIMEOUT / 5);

    expect(changes).toEqual(['target outage', 'target answers']);
    expect(target.catchUps).toBe(1);
    expect(outages.state('target')?.silentSinceMs).toBeUndefined();
    expect(await outcome(gate.admit('change', ['target'], never))).toBe('admitted');
  });

  test('lasts while catching up fails, and catching up is tried forever', async () => {
    const { target, changes, clock, outages, pass } = await start();
    target.up = false;
    await pass(2 * MINUTE);
    target.up = true;
    target.canCatchUp = false;
    await pass(10 * MINUTE);
    const attempts = target.catchUps;
    const whileFailing = [...changes];
    const answeredMs = outages.state('target')?.answeredMs;
    const answeredAgoMs = clock.monotonicMs() - (answeredMs ?? 0);
    target.canCatchUp = true;
    await pass(TIMEOUT / 5);

    expect(attempts).toBeGreaterThan(50);
    expect(answeredAgoMs).toBeLessThan(10 * SECOND);
    expect(whileFailing).toEqual(['target outage']);
    expect(changes).toEqual(['target outage', 'target answers']);
  });

  test('tells which cluster it is, since when, why, and at the end how long it was', async () => {
    const { target, told, outages, pass } = await start();
    target.up = false;
    await pass(10 * MINUTE);
    const during = outages.current();
    target.up = true;
    await pass(TIMEOUT / 5);

    // The first probe failed a period after the start, when it had answered for the last time.
    const outage = { cluster: 'target', sinceMs: Date.UTC(2026, 0, 1), why: 'connection refused' };
    expect(during).toEqual([outage]);
    expect(told).toMatchObject([
      { ...outage, isOver: false, lastedMs: PERIOD + TIMEOUT },
      { ...outage, isOver: true },
    ]);
    expect(told[1]?.lastedMs).toBeGreaterThan(10 * MINUTE);
    expect(outages.current()).toEqual([]);
  });

  test.each([
    { what: 'the last good probe', targetUp: true, sawLifeAtMs: undefined, sinceMs: 0 },
    { what: 'the last watch event', targetUp: true, sawLifeAtMs: 40 * SECOND, sinceMs: 40 * SECOND },
    { what: 'the sending of the first probe', targetUp: 'hangs', sawLifeAtMs: undefined, sinceMs: 0 },
    { what: 'the probe, if it was sent before an event', targetUp: 'hangs', sawLifeAtMs: 5 * SECOND, sinceMs: 0 },
  ] as const)('is told to have begun with $what', async ({ targetUp, sawLifeAtMs = 0, sinceMs }) => {
    const { target, clock, outages, registry, pass } = await start({ targetUp });
    const startMs = clock.now() - clock.monotonicMs();
    await clock.advanceAsync(sawLifeAtMs === 0 ? 0 : sawLifeAtMs - clock.monotonicMs());
    if (sawLifeAtMs > 0) outages.sawLife('target');
    target.up = 'hangs';
    await pass(2 * MINUTE);

    expect(outages.state('target')).toMatchObject({ outage: {}, silentSinceMs: sinceMs });
    expect(outages.current()).toMatchObject([{ sinceMs: startMs + sinceMs }]);
    expect(await registry.metrics()).toContain(
      `machinist_cluster_outage_since_timestamp_seconds{cluster="target"} ${(startMs + sinceMs) / SECOND}`,
    );
  });

  test('names a reason that the operating guide explains', async () => {
    const { outages, pass } = await start({ targetUp: 'hangs' });
    await pass(MINUTE);
    const [outage] = outages.current();
    const guide = readFileSync(new URL('../../../docs/operations/outages.md', import.meta.url), 'utf8');

    expect(outage?.why).toBe('probing the API server took longer than 10000 ms');
    expect(guide.replaceAll(/\s+/g, ' ')).toContain(`\`${outage?.why.replaceAll(/\d+/g, '…')}\``);
  });

  test('comes at once when a cluster has never answered: a restart does not end an outage', async () => {
    const { target, changes, gate, pass } = await start({ targetUp: false });
    const atStart = [...changes];

    const admitted = await outcome(gate.admit('change', ['target'], never));
    target.up = true;
    await pass(2 * SECOND);

    expect(atStart).toEqual(['target outage']);
    expect(admitted).toBe('outage target');
    expect(changes).toEqual(['target outage', 'target answers']);
    expect(target.catchUps).toBe(0); // a leader that begins catches up by itself
    expect(gate.graceLeftMs(BOTH)).toBeGreaterThan(2 * MINUTE - 3 * SECOND);
  });

  test('shows in the metrics, by cluster and for the process', async () => {
    const { target, registry, pass, outages } = await start();
    target.up = false;
    await pass(2 * MINUTE);

    const text = await registry.metrics();
    const since = (outages.current()[0]?.sinceMs ?? 0) / 1_000;
    target.up = true;
    await pass(2 * MINUTE);
    const afterwards = await registry.metrics();

    expect(text).toContain('machinist_cluster_outage{cluster="target"} 1');
    expect(text).toContain('machinist_cluster_outage{cluster="control"} 0');
    expect(text).toContain('mcm_machine_controller_frozen 1');
    expect(text).toContain('machinist_cluster_outage_reason{cluster="target",reason="unreachable"} 1');
    expect(text).toContain('machinist_cluster_outage_reason{cluster="target",reason="set-back"} 0');
    expect(text).toContain('machinist_cluster_outage_reason{cluster="control",reason="unreachable"} 0');
    expect(afterwards).toContain('machinist_cluster_outage_reason{cluster="target",reason="unreachable"} 0');
    const times = text.split('\n').filter((line) => line.startsWith('machinist_cluster_outage_since'));
    expect(times).toEqual([`machinist_cluster_outage_since_timestamp_seconds{cluster="target"} ${since}`]);
    expect(afterwards).not.toContain('machinist_cluster_outage_since_timestamp_seconds{');
    expect(afterwards).toContain('machinist_cluster_outage{cluster="target"} 0');
  });

  test('a cluster that stands apart holds what concerns it, and is neither reported nor counted with the others', async () => {
    const { outages, registry, pass, told, gate } = await start();
    const apart = new TestCluster('ns/c');
    apart.up = false;
    const heard: boolean[] = [];
    outages.add(apart, ({ isOver }) => void heard.push(isOver));
    await pass(2 * MINUTE);

    expect([heard, told, outages.current()]).toEqual([[false], [], []]);
    expect(await registry.metrics()).toContain('mcm_machine_controller_frozen 0');
    await expect(gate.admit('change', ['ns/c'], never)).rejects.toMatchObject({ reason: 'outage', cluster: 'ns/c' });
    await gate.admit('change', ['target'], never);
    apart.up = true;
    await pass(MINUTE);
    expect(heard).toEqual([false, true]);
    await outages.remove('ns/c');
    expect(await registry.metrics()).not.toContain('ns/c');
  });

  test('a removed cluster is no longer probed nor counted', async () => {
    const { target, outages, registry, pass } = await start();
    target.up = false;
    await pass(2 * MINUTE);

    await outages.remove('target');
    const before = target.probes;
    await pass(5 * MINUTE);

    expect(target.probes).toBe(before);
    expect(await registry.metrics()).toContain('mcm_machine_controller_frozen 0');
  });
});

describe('grace', () => {
  test('lasts from the beginning of leadership', async () => {
    const { gate, pass } = await start();

    await pass(30 * SECOND);

    expect(gate.trustedForMs(BOTH)).toBe(30 * SECOND + 1);
    expect(gate.graceLeftMs(BOTH)).toBe(90 * SECOND - 1);
  });

  test('begins anew at the end of an outage, only for who depends on that cluster', async () => {
    const { gate, target, pass } = await start();
    target.up = false;
    await pass(10 * MINUTE);
    const during = gate.trustedForMs(BOTH);
    target.up = true;
    await pass(10 * SECOND);

    expect(during).toBe(0);
    expect(gate.graceLeftMs(BOTH)).toBeGreaterThan(110 * SECOND);
    expect(gate.graceLeftMs([CONTROL])).toBe(0);
  });

  test('never ends while not leading', async () => {
    const { gate, fence, clock } = await start();
    await clock.advanceAsync(10 * MINUTE);
    fence.close();

    expect(gate.trustedForMs([CONTROL])).toBe(0);
    expect(gate.graceLeftMs([CONTROL])).toBe(2 * MINUTE);
  });
});
