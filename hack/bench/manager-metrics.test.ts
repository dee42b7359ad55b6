import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { queueMetrics } from '../../pkg/base/metrics/queue.ts';
import { countsIn } from './manager-metrics.ts';

test('keys that waited more than a second are counted by queue', async () => {
  const registry = new Registry();
  const metrics = queueMetrics(registry);
  const idle = { depth: 0, oldestWaitingMs: 0, runningMs: [] };
  const machine = metrics.track('machine', () => idle);
  for (const ms of [0, 10, 1_000, 1_001, 20_000]) machine.started(ms);
  metrics.track('machineset', () => idle).started(5);

  const { lateKeys } = countsIn(await registry.metrics());

  expect(Object.fromEntries(lateKeys)).toEqual({ machine: 2, machineset: 0 });
});

test('passes are summed over their results', () => {
  const text = [
    'machinist_reconcile_passes_total{controller="machine",result="success"} 3',
    'machinist_reconcile_passes_total{controller="machine",result="requeue"} 2',
    'machinist_reconcile_passes_total{result="success",controller="machine-set"} 1',
  ].join('\n');

  expect(Object.fromEntries(countsIn(text).passes)).toEqual({ machine: 5, 'machine-set': 1 });
});
