import { describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import type { Recorder } from '../kube/events/recorder.ts';
import { CONTROL } from '../kube/gate/gate.ts';
import { Outages } from '../kube/gate/outages.ts';
import { HeldWork } from '../health/held-work.ts';
import { silentLogger } from '../base/log/logger.ts';
import type { Controller } from '../work/reconcile/controller.ts';
import { stop } from '../work/reconcile/result.ts';
import type { Cell } from './cell.ts';
import type { OwnLeadership } from './leadership.ts';
import type { ManagerProcess } from './manager-process.ts';
import { operatorMetrics } from './metrics.ts';
import { Work } from './work.ts';

const never = new AbortController().signal;
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Controllers `one` and `other`, of which only the first runs here; what they do, in order. */
function start(change: Partial<Controller> = {}, targetHasOutage = false) {
  const clock = new FakeClock();
  const metrics = operatorMetrics(new Registry());
  const story: string[] = [];
  const controller = (name: string): Controller => ({
    name,
    queue: name,
    lease: 'lease',
    concurrency: 1,
    reconcile: (key) => {
      story.push(`${name} ${key}`);
      return Promise.resolve(stop);
    },
    requiresTarget: () => false,
    watches: [() => void story.push(`${name} watches`), (queue) => queue.add('key')],
    ...change,
  });
  const outages = new Outages({
    clock,
    log: silentLogger,
    metrics: metrics.gate,
    periodMs: 60_000,
    timeoutMs: 30_000,
  });
  if (targetHasOutage) {
    Object.assign(outages, { state: () => ({ outage: {} }) });
  }
  const waitForever = { reader: { list: () => new Promise(() => undefined) } };
  const told = (what: string) => (): Promise<void> => Promise.resolve(void story.push(what));
  const process = { options: { clock } } as unknown as ManagerProcess;
  const target = targetHasOutage && { caches: { cluster: 'target', kinds: [waitForever as never] } };
  const cell = {
    config: { controllers: new Set(['one']) },
    ofControl: { cluster: CONTROL, kinds: [] },
    ...(target && { target }),
    outages,
    held: new HeldWork({ clock }),
    log: silentLogger,
    metrics,
  } as unknown as Cell;
  const leadership = {
    lease: 'lease',
    elector: undefined,
    recorder: {} as Recorder,
    endTurns: told('turns end'),
    close: told('closed'),
  } as OwnLeadership;
  const work = new Work(process, cell, leadership, {
    controllers: [controller('one'), controller('other')],
    services: [{ begin: () => void story.push('service begins'), end: told('service ends') }],
    reports: { subscribe: () => void story.push('reports') },
  });
  return { story, work };
}

describe('the work of a leadership', () => {
  test('begins with the watches of the controllers that run here, and gives those of others no keys', async () => {
    const { story, work } = start();
    expect(story).toEqual([]);

    await work.begin(never);
    await settle();

    expect(story).toEqual(['reports', 'one watches', 'service begins', 'one key']);
    await work.end(0);
  });

  test('reports although the target cannot be reached, and holds back what needs it', async () => {
    const reports: string[] = [];
    const report = (key: string): Promise<void> => Promise.resolve(void reports.push(key));
    const { story, work } = start({ report, requiresTarget: () => true }, true);

    await work.begin(never);
    await settle();

    expect({ story, reports }).toEqual({ story: ['reports', 'one watches', 'service begins'], reports: ['key'] });
    await work.end(0);
  });

  test('goes on without the target where it is not needed', async () => {
    const { story, work } = start({ requiresTarget: () => false }, true);

    await work.begin(never);
    await settle();

    expect(story).toEqual(['reports', 'one watches', 'service begins', 'one key']);
    await work.end(0);
  });

  test('ends each controller in its own way, those that do not run here too, and then closes what it acted with', async () => {
    const ended: number[] = [];
    const { story, work } = start({ end: (_queue, graceMs) => Promise.resolve(void ended.push(graceMs)) });

    await work.end(20);

    expect(ended).toEqual([20, 20]);
    expect(story).toEqual(['turns end', 'service ends', 'closed']);
  });
});
