import type { Counter, Registry } from 'prom-client';

import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { controllerOf } from '../../apis/meta.ts';
import { declaring } from '../../base/metrics/declaring.ts';
import { objectNameLabels, seconds } from '../../base/metrics/object-labels.ts';
import { NAMED, ownerGauges, type ObjectValues } from '../../base/metrics/owner-gauges.ts';
import { objectGauges } from '../../base/metrics/object-gauges.ts';
import { scrapeFailures } from '../../base/metrics/scrape-failures.ts';
import type { VictimReason } from '../replicas/replica-plan.ts';

/** What MachineSets are counted by. The other metrics of this area are read from the cache at each scrape. */
export interface MachineSetMetrics {
  /** Machines deleted because their health check had failed for too long. */
  readonly staleMachines: Counter;
  readonly created: Counter;
  readonly deleted: Counter<'reason'>;
}

/** Why a MachineSet deletes a Machine: see Victim; owner: the set itself is being deleted. */
export type DeletionReason = VictimReason | 'owner';

/** Gauges with labels NAMED, by what is read from a set; undefined leaves the series out. */
const VALUES: ObjectValues<MachineSet> = {
  info_spec_replicas: ['Desired machines.', ({ spec }) => spec.replicas ?? 0],
  info_spec_min_ready_seconds: ['minReadySeconds.', ({ spec }) => spec.minReadySeconds ?? 0],
  status_available_replicas: ['Available machines.', ({ status }) => status?.availableReplicas ?? 0],
  status_fully_labelled_replicas: [
    'Machines with all labels of the template.',
    ({ status }) => status?.fullyLabeledReplicas ?? 0,
  ],
  status_ready_replicas: ['Ready machines.', ({ status }) => status?.readyReplicas ?? 0],
  // The original shows the ready replicas here; a metric of this name can only be meant to show these.
  status_replicas: ['Machines in any phase.', ({ status }) => status?.replicas ?? 0],
};

/** Declares the metrics of MachineSets in `registry`; `list` is asked at each scrape, so deleted sets leave no series. */
export function machineSetMetrics(registry: Registry, list: () => readonly MachineSet[]): MachineSetMetrics {
  const eachSet = objectGauges(
    registry,
    'mcm_machine_set',
    'Number of machine sets.',
    list,
    scrapeFailures(registry, 'Machineset-count'),
  );
  eachSet('info', 'Machine sets and their class.', INFO_LABELS, (set) => [[infoOf(set), 1]]);
  ownerGauges(eachSet, {
    values: VALUES,
    conditionsOf: ({ status }) => status?.machineSetCondition ?? [],
    failedMachinesOf: ({ status }) => status?.failedMachines ?? [],
  });
  const { counter, series } = declaring(registry);
  series('machinist_machine_set_missing_replicas', MISSING, NAMED, () =>
    list()
      .filter(isAlone)
      .map((set) => [objectNameLabels(set), missingOf(set)]),
  );
  return {
    created: counter('machinist_machines_created_total').help('Machines that MachineSets created.'),
    deleted: counter('machinist_machines_deleted_total', ['reason']).help(
      'Machines that MachineSets deleted, by reason: failed (to be replaced), surplus, marked (requested by the autoscaler), owner (their MachineSet is being deleted).',
    ),
    staleMachines: counter('mcm_machine_stale_machines_total').help(
      'Machines deleted because their health check had failed for too long.',
    ),
  };
}

const MISSING = 'Desired machines of a MachineSet without a MachineDeployment that are not available.';

/** Of the others, the metrics of their MachineDeployments tell. */
function isAlone(set: MachineSet): boolean {
  return controllerOf(set)?.kind !== 'MachineDeployment' && set.metadata.deletionTimestamp === undefined;
}

/** Whatever generation its status is of: a set that the controller cannot reach lacks machines all the same. */
function missingOf({ spec, status }: MachineSet): number {
  return Math.max(0, (spec.replicas ?? 0) - (status?.availableReplicas ?? 0));
}

const INFO_LABELS = [
  ...NAMED,
  'createdAt',
  'spec_machine_class_api_group',
  'spec_machine_class_kind',
  'spec_machine_class_name',
] as const;

function infoOf(set: MachineSet): Record<(typeof INFO_LABELS)[number], string> {
  const { apiGroup = '', kind = '', name = '' } = set.spec.machineClass ?? {};
  return {
    ...objectNameLabels(set),
    createdAt: seconds(set.metadata.creationTimestamp),
    spec_machine_class_api_group: apiGroup,
    spec_machine_class_kind: kind,
    spec_machine_class_name: name,
  };
}
