import type { Registry } from 'prom-client';

import type { IntOrPercent, MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { objectNameLabels, seconds } from '../../base/metrics/object-labels.ts';
import { NAMED, ownerGauges, type ObjectValues } from '../../base/metrics/owner-gauges.ts';
import { objectGauges } from '../../base/metrics/object-gauges.ts';
import { scrapeFailures } from '../../base/metrics/scrape-failures.ts';

/** Gauges with labels NAMED, by what is read from a MachineDeployment; undefined leaves the series out. */
const VALUES: ObjectValues<MachineDeployment> = {
  info_spec_paused: ['Whether the rollout is paused.', ({ spec }) => (spec.paused === true ? 1 : 0)],
  info_spec_replicas: ['Desired machines.', ({ spec }) => spec.replicas ?? 0],
  info_spec_min_ready_seconds: ['minReadySeconds.', ({ spec }) => spec.minReadySeconds ?? 0],
  info_spec_revision_history_limit: [
    'Number of old machine sets to keep.',
    ({ spec }) => spec.revisionHistoryLimit ?? undefined,
  ],
  info_spec_progress_deadline_seconds: [
    'Seconds without progress after which a rollout is reported as stuck.',
    ({ spec }) => spec.progressDeadlineSeconds ?? undefined,
  ],
  info_spec_rollback_to_revision: [
    'Revision to roll back to.',
    ({ spec }) => (spec.rollbackTo ? (spec.rollbackTo.revision ?? 0) : undefined),
  ],
  info_spec_rolling_update_max_surge: [
    'maxSurge of a rolling update; a percentage shows as 0.',
    (object) => rollingLimit(object, 'maxSurge'),
  ],
  info_spec_rolling_update_max_unavailable: [
    'maxUnavailable of a rolling update; a percentage shows as 0.',
    (object) => rollingLimit(object, 'maxUnavailable'),
  ],
  status_available_replicas: ['Available machines.', ({ status }) => status?.availableReplicas ?? 0],
  status_unavailable_replicas: [
    'Machines that are missing or not available.',
    ({ status }) => status?.unavailableReplicas ?? 0,
  ],
  status_ready_replicas: ['Ready machines.', ({ status }) => status?.readyReplicas ?? 0],
  status_updated_replicas: ['Machines of the new template.', ({ status }) => status?.updatedReplicas ?? 0],
  status_replicas: ['Machines in any phase.', ({ status }) => status?.replicas ?? 0],
  status_collision_count: [
    'Number of collisions of the name of a new machine set.',
    ({ status }) => status?.collisionCount ?? undefined,
  ],
};

/**
 * Declares the metrics of MachineDeployments in `registry`; `list` is asked at each scrape, so deleted ones leave no
 * series.
 */
export function machineDeploymentMetrics(registry: Registry, list: () => readonly MachineDeployment[]): void {
  const each = objectGauges(
    registry,
    'mcm_machine_deployment',
    'Number of machine deployments.',
    list,
    scrapeFailures(registry, 'Machinedeployment-count'),
  );
  each('info', 'Machine deployments and their strategy.', [...NAMED, 'createdAt', 'spec_strategy_type'], (object) => [
    [
      {
        ...objectNameLabels(object),
        createdAt: seconds(object.metadata.creationTimestamp),
        spec_strategy_type: object.spec.strategy?.type ?? '',
      },
      1,
    ],
  ]);
  ownerGauges(each, {
    values: VALUES,
    conditionsOf: ({ status }) => status?.conditions ?? [],
    failedMachinesOf: ({ status }) => status?.failedMachines ?? [],
  });
}

function rollingLimit({ spec }: MachineDeployment, limit: 'maxSurge' | 'maxUnavailable'): number | undefined {
  if (spec.strategy?.type !== 'RollingUpdate') return undefined;
  const value: IntOrPercent | undefined = spec.strategy.rollingUpdate?.[limit];
  return typeof value === 'number' ? value : 0;
}
