import { expect, test } from '@jest/globals';
import { Gauge, Registry } from 'prom-client';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { AlertSamples } from './alert-samples.ts';

test('the values of metrics that decide alerts are read, with their labels, and for some seconds not again', async () => {
  const registry = new Registry();
  const clock = new FakeClock();
  let collected = 0;
  void new Gauge({
    name: 'machinist_drains_blocked',
    help: 'x',
    labelNames: ['n'],
    registers: [registry],
    collect() {
      this.set({ n: 'a' }, ++collected);
    },
  });
  new Gauge({ name: 'other', help: 'x', registers: [registry] }).set(1);
  const samples = new AlertSamples({ registry, clock });

  const first = await samples.read();
  clock.advance(4_999);
  const second = await samples.read();
  clock.advance(1);
  const third = await samples.read();

  expect(first).toEqual([{ name: 'machinist_drains_blocked', labels: { n: 'a' }, value: 1 }]);
  expect(second).toBe(first);
  expect(third.map(({ value }) => value)).toEqual([2]);
});
