import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { silentLogger } from '../base/log/logger.ts';
import { HeldWork } from '../health/held-work.ts';
import type { Outages } from '../kube/gate/outages.ts';
import { requeue, stop } from '../work/reconcile/result.ts';
import type { Cell } from './cell.ts';
import type { ClusterCaches } from './cluster-caches.ts';
import type { ManagerProcess } from './manager-process.ts';
import { TargetReadiness } from './target-readiness.ts';

type OnOutage = Parameters<Outages['onChange']>[0];

const TARGET = 'target';
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A target cluster whose list of Nodes is answered when the test says so. */
function start({ hasOutage = false, longestMs }: { hasOutage?: boolean; longestMs?: number } = {}) {
  const clock = new FakeClock();
  const answer = Promise.withResolvers<void>();
  const warnings: string[] = [];
  const listeners: OnOutage[] = [];
  let state = hasOutage ? { outage: {} } : {};
  const process = { options: { clock }, random: () => 0.5 } as unknown as ManagerProcess;
  const cell = {
    outages: { state: () => state, onChange: (listener: OnOutage) => void listeners.push(listener) },
    held: new HeldWork({ clock }),
    log: { ...silentLogger, warn: (_fields: object, message: string) => void warnings.push(message) },
    ...(longestMs !== undefined && { firstRead: { longestMs, until: () => Promise.resolve() } }),
  } as unknown as Cell;
  const list = (): Promise<object> => answer.promise.then(() => ({ metadata: { resourceVersion: '7' }, items: [] }));
  const nodes = { reader: { list }, informer: { waitFor: () => Promise.resolve() } };
  const target = { cluster: TARGET, kinds: [nodes] } as unknown as ClusterCaches;
  const stopping = new AbortController();
  const readiness = new TargetReadiness(process, cell, 'lease', target);
  const beginning = readiness.begin(stopping.signal);
  let hasBegun = false;
  const noted = beginning.then(
    () => void (hasBegun = true),
    () => undefined,
  );
  const reconcile = readiness.holding(
    () => Promise.resolve(stop),
    (key) => key === 'needs it',
  );
  return {
    clock,
    readiness,
    warnings,
    beginning,
    noted,
    stopping,
    answer: () => answer.resolve(),
    hasBegun: () => hasBegun,
    /** Of this cluster, or of another one. */
    outage: (cluster: string): void => {
      if (cluster === TARGET) state = { outage: {} };
      for (const listener of listeners) listener({ cluster, isOver: false } as Parameters<OnOutage>[0]);
    },
    reconciled: (key: string) => reconcile(key, stopping.signal, silentLogger),
  };
}

describe('a leader whose target is a cluster of its own', () => {
  test('begins when the caches have caught up, and then nothing waits', async () => {
    const { answer, hasBegun, noted, readiness, reconciled, warnings } = start();
    await settle();
    expect([hasBegun(), readiness.isReady]).toEqual([false, false]);

    answer();
    await noted;

    expect([hasBegun(), readiness.isReady, warnings]).toEqual([true, true, []]);
    expect(await reconciled('needs it')).toEqual(stop);
  });

  test.each([{ when: 'before' }, { when: 'while' }])(
    'begins without it where it has an outage $when it is read; what needs it waits until it is read',
    async ({ when }) => {
      const { answer, outage, noted, readiness, reconciled, warnings } = start({ hasOutage: when === 'before' });
      await settle();
      if (when === 'while') outage(TARGET);
      await noted;

      expect(warnings).toEqual(['started without the target cluster: only forced deletions are possible']);
      expect(await reconciled('needs it')).toEqual(requeue(5_000, 'the target cluster to respond'));
      expect(await reconciled('does not')).toEqual(stop);

      answer();
      await settle();
      expect(readiness.isReady).toBe(true);
      expect(await reconciled('needs it')).toEqual(stop);
    },
  );

  test('does not begin for an outage of another cluster', async () => {
    const { hasBegun, outage } = start();
    outage('control');
    await settle();

    expect(hasBegun()).toBe(false);
  });

  test('waits for a first read no longer than that may take, and what needs it still waits', async () => {
    const { clock, hasBegun, noted, reconciled, warnings } = start({ longestMs: 10_000 });
    await clock.advanceAsync(9_999);
    expect(hasBegun()).toBe(false);

    await clock.advanceAsync(1);
    await noted;

    expect(warnings).toEqual(['started without the target cluster: what needs it waits']);
    expect(await reconciled('needs it')).toEqual(requeue(5_000, 'the target cluster to respond'));
  });

  test('ends with the reason of the signal', async () => {
    const { beginning, stopping } = start();
    const reason = new Error('the Lease is lost');
    stopping.abort(reason);

    await expect(beginning).rejects.toBe(reason);
  });
});

test('where there is one cluster only, nothing waits', async () => {
  const readiness = new TargetReadiness({ options: {} } as ManagerProcess, {} as Cell, 'lease', undefined);
  const reconcile = readiness.holding(
    () => Promise.resolve(stop),
    () => true,
  );

  expect(readiness.isReady).toBe(true);
  expect(await reconcile('key', new AbortController().signal, silentLogger)).toEqual(stop);
});
