import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { machineClass } from '../../../test/builders.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { waitMetrics, type WaitSource } from './wait-metrics.ts';

async function linesOf(steps: WaitSource['steps'], clock = new FakeClock()): Promise<string[]> {
  const registry = new Registry();
  waitMetrics(registry, { steps, classes: { list: () => [machineClass()] }, clock });
  const text = await registry.metrics();
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

test('blocked drains show their reason, and when the first of them is forced', async () => {
  const clock = new FakeClock();
  const at = (seconds: number): number => clock.now() + seconds * 1_000;
  const blocked = [
    { reason: 'disruption-budget', forceAtMs: at(90) },
    { reason: 'disruption-budget', forceAtMs: at(60) },
    { reason: 'error', forceAtMs: at(-5) },
    { reason: 'terminating', forceAtMs: undefined },
  ] as const;

  const lines = await linesOf(
    { drains: { blocked: () => blocked }, retries: { held: () => [], isExhausted: () => false } },
    clock,
  );

  expect(lines).toEqual([
    'machinist_drains_blocked{reason="disruption-budget"} 2',
    'machinist_drains_blocked{reason="error"} 1',
    'machinist_drains_blocked{reason="terminating"} 1',
    'machinist_drains_blocked_next_force_seconds{reason="disruption-budget"} 60',
    'machinist_drains_blocked_next_force_seconds{reason="error"} 0',
    'machinist_machine_class_exhausted{namespace="default",machine_class="class-1"} 0',
  ]);
});

test('failed calls that wait show by class; those of a class that is gone do not', async () => {
  const { uid } = machineClass().metadata;
  const held = [
    { call: 'create', classUID: uid },
    { call: 'create', classUID: uid },
    { call: 'delete', classUID: 'gone' },
  ] as const;

  const lines = await linesOf({
    drains: { blocked: () => [] },
    retries: { held: () => held, isExhausted: (classUID) => classUID === uid },
  });

  expect(lines).toEqual([
    'machinist_driver_retries_held{namespace="default",machine_class="class-1",call="create"} 2',
    'machinist_machine_class_exhausted{namespace="default",machine_class="class-1"} 1',
  ]);
});
