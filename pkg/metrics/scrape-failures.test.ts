import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { machineDeploymentMetrics } from '../controllers/machine-deployment/metrics.ts';
import { machineSetMetrics } from '../controllers/machine-set/metrics.ts';

test('a scrape that cannot count the objects of a kind is counted itself, beside kinds that can', async () => {
  const registry = new Registry();
  let isBroken = true;
  machineSetMetrics(registry, () => {
    if (isBroken) throw new Error('no cache');
    return [];
  });
  machineDeploymentMetrics(registry, () => []);

  await expect(registry.metrics()).rejects.toThrow('no cache');
  isBroken = false;
  const text = await registry.metrics();

  expect(text).toContain(
    'mcm_misc_scrape_failure_total{kind="Machineset-count",binary="machine-controller-manager"} 1',
  );
  expect(text).toContain(
    'mcm_misc_scrape_failure_total{kind="Machinedeployment-count",binary="machine-controller-manager"} 0',
  );
});
