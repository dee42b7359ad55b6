import type { Registry } from 'prom-client';

import type { IntOrPercent, MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { objectNameLabels, seconds } from '../../base/metrics/object-labels.ts';
import { NAMED, ownerGauges, type ObjectValue } from '../../base/metrics/owner-gauges.ts';
import { objectGauges } from '../../base/metrics/object-gauges.ts';
import { scrapeFailures } from '../../base/metrics/scrape-failures.ts';

/** Gauges with labels NAMED, by what is read from a MachineDeployment; undefined leaves the series out. */
const VALUES: readonly ObjectValue<MachineDeployment>[] = [
  {
    name: 'info_spec_paused',
    help: 'Whether the rollout is paused.',
    of: ({ spec }) => (spec.paused === true ? 1 : 0),
  },
  { name: 'info_spec_replicas', help: 'Desired machines.', of: ({ spec }) => spec.replicas ?? 0 },
  { name: 'info_spec_min_ready_seconds', help: 'minReadySeconds.', of: ({ spec }) => spec.minReadySeconds ?? 0 },
  {
    name: 'info_spec_revision_history_limit',
    help: 'Number of old machine sets to keep.',
    of: ({ spec }) => spec.revisionHistoryLimit ?? undefined,
  },
  {
    name: 'info_spec_progress_deadline_seconds',
    help: 'Seconds without progress after which a rollout is reported as stuck.',
    of: ({ spec }) => spec.progressDeadlineSeconds ?? undefined,
  },
  {
    name: 'info_spec_rollback_to_revision',
    help: 'Revision to roll back to.',
    of: ({ spec }) => (spec.rollbackTo ? (spec.rollbackTo.revision ?? 0) : undefined),
  },
  {
    name: 'info_spec_rolling_update_max_surge',
    help: 'maxSurge of a rolling update; a percentage shows as 0.',
    of: (object) => rollingLimit(object, 'maxSurge'),
  },
  {
    name: 'info_spec_rolling_update_max_unavailable',
    help: 'maxUnavailable of a rolling update; a percentage shows as 0.',
    of: (object) => rollingLimit(object, 'maxUnavailable'),
  },
  {
    name: 'status_available_replicas',
    help: 'Available machines.',
    of: ({ status }) => status?.availableReplicas ?? 0,
  },
  {
    name: 'status_unavailable_replicas',
    help: 'Machines that are missing or not available.',
    of: ({ status }) => status?.unavailableReplicas ?? 0,
  },
  { name: 'status_ready_replicas', help: 'Ready machines.', of: ({ status }) => status?.readyReplicas ?? 0 },
  {
    name: 'status_updated_replicas',
    help: 'Machines of the new template.',
    of: ({ status }) => status?.updatedReplicas ?? 0,
  },
  { name: 'status_replicas', help: 'Machines in any phase.', of: ({ status }) => status?.replicas ?? 0 },
  {
    name: 'status_collision_count',
    help: 'Number of collisions of the name of a new machine set.',
    of: ({ status }) => status?.collisionCount ?? undefined,
  },
];

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
