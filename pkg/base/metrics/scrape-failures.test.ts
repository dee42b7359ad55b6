import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { machineDeploymentMetrics } from '../../controllers/machine-deployment/metrics.ts';
import { machineSetMetrics } from '../../controllers/machine-set/metrics.ts';
import { silentLogger } from '../log/logger.ts';
import { expose, metricsText } from './exposition.ts';
import { metricFailures } from './metric-failures.ts';

test('a scrape that cannot count the objects of a kind is counted itself, beside kinds that can', async () => {
  const registry = new Registry();
  let isBroken = true;
  const failures = metricFailures(registry, silentLogger);
  machineSetMetrics(registry, () => {
    if (isBroken) throw new Error('no cache');
    return [];
  });
  machineDeploymentMetrics(registry, () => []);

  const { body: broken } = expose(await metricsText(registry, failures));
  isBroken = false;
  const { body: text } = expose(await metricsText(registry, failures));

  expect(broken).not.toContain('# TYPE mcm_machine_set_items_total');
  expect(broken).toContain('mcm_machine_deployment_items_total 0');
  expect(text).toContain(
    'mcm_misc_scrape_failure_total{kind="Machineset-count",binary="machine-controller-manager"} 1',
  );
  expect(text).toContain(
    'mcm_misc_scrape_failure_total{kind="Machinedeployment-count",binary="machine-controller-manager"} 0',
  );
});
