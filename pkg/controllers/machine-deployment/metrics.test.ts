import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { machineDeployment } from '../../../test/builders.ts';
import { machineDeploymentMetrics } from './metrics.ts';

async function metricsOf(...deployments: MachineDeployment[]): Promise<string[]> {
  const registry = new Registry();
  machineDeploymentMetrics(registry, () => deployments);
  return (await registry.metrics()).split('\n');
}

test('machine deployments are shown under the names and labels of the original', async () => {
  const deployment = machineDeployment((d) => {
    d.spec = {
      ...d.spec,
      replicas: 5,
      paused: true,
      revisionHistoryLimit: 2,
      progressDeadlineSeconds: 60,
      rollbackTo: { revision: 7 },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 2, maxUnavailable: '25%' } },
    };
    d.status = {
      ...d.status,
      unavailableReplicas: 4,
      collisionCount: 3,
      conditions: [{ type: 'Progressing', status: 'Unknown' }],
      failedMachines: [{ name: 'm' }],
    };
  });
  const n = 'name="deployment-1",namespace="default"';

  const lines = await metricsOf(deployment);

  for (const line of [
    'mcm_machine_deployment_items_total 1',
    `mcm_machine_deployment_info{${n},createdAt="1767225600",spec_strategy_type="RollingUpdate"} 1`,
    `mcm_machine_deployment_info_spec_paused{${n}} 1`,
    `mcm_machine_deployment_info_spec_replicas{${n}} 5`,
    `mcm_machine_deployment_info_spec_min_ready_seconds{${n}} 0`,
    `mcm_machine_deployment_info_spec_revision_history_limit{${n}} 2`,
    `mcm_machine_deployment_info_spec_progress_deadline_seconds{${n}} 60`,
    `mcm_machine_deployment_info_spec_rollback_to_revision{${n}} 7`,
    `mcm_machine_deployment_info_spec_rolling_update_max_surge{${n}} 2`,
    `mcm_machine_deployment_info_spec_rolling_update_max_unavailable{${n}} 0`,
    `mcm_machine_deployment_status_condition{${n},condition="Progressing"} 2`,
    `mcm_machine_deployment_status_available_replicas{${n}} 1`,
    `mcm_machine_deployment_status_unavailable_replicas{${n}} 4`,
    `mcm_machine_deployment_status_ready_replicas{${n}} 1`,
    `mcm_machine_deployment_status_updated_replicas{${n}} 1`,
    `mcm_machine_deployment_status_replicas{${n}} 1`,
    `mcm_machine_deployment_status_collision_count{${n}} 3`,
    `mcm_machine_deployment_failed_machines{${n},failed_machine_name="m",failed_machine_provider_id="",failed_machine_owner_ref="",failed_machine_last_operation_state="",failed_machine_last_operation_machine_operation_type=""} 1`,
  ]) {
    expect(lines).toContain(line);
  }
});

test('what is not set is not shown', async () => {
  const recreating = machineDeployment((d) => {
    d.spec.strategy = { type: 'Recreate' };
  });
  const { metadata } = recreating;

  for (const lines of [await metricsOf(recreating), await metricsOf({ metadata, spec: { template: {} } })]) {
    const text = lines.filter((line) => !line.startsWith('#')).join('\n');
    expect(text).toContain('mcm_machine_deployment_info_spec_replicas');
    expect(text).not.toMatch(/rolling_update|rollback|deadline|history|collision/);
  }
});
