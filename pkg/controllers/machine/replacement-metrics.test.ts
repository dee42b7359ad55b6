import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { replacementMetrics } from './replacement-metrics.ts';

test('zones of one name are told apart', async () => {
  const registry = new Registry();
  const zones = ['aws', 'gcp'].map((provider, i) => ({
    zone: { cluster: 'target', provider, name: 'a' },
    isStopped: i === 0,
  }));

  replacementMetrics(registry, { held: () => ['pace', 'pace'], zones: () => zones }, ['zone', 'pace']);

  const text = await registry.metrics();
  expect(text).toContain('machinist_zone_stopped{cluster="target",provider="aws",zone="a"} 1');
  expect(text).toContain('machinist_zone_stopped{cluster="target",provider="gcp",zone="a"} 0');
  expect(text).toContain('machinist_replacements_held{reason="zone"} 0');
  expect(text).toContain('machinist_replacements_held{reason="pace"} 2');
});
