import type { Histogram, Registry } from 'prom-client';

import { nodeNameOf, providerIDOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { objectNameLabels } from '../../base/metrics/object-labels.ts';
import { NAMED } from '../../base/metrics/owner-gauges.ts';
import { declaring } from '../../base/metrics/declaring.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { DEPLOYMENT_NAME_LABEL, ZONE_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { fromTimestamp } from '../../base/clock/clock.ts';
import type { FailureReason } from './failure/fail.ts';

/** What happened to machines. Durations in milliseconds; the class may be unknown. */
export interface MachineMetrics {
  /** A VM was created, so long after the Machine. */
  created(machine: Machine, machineClass: MachineClass | undefined, durationMs: number): void;
  initialized(machine: Machine, machineClass: MachineClass | undefined, durationMs: number): void;
  /** A machine became Running for the first time, so long after it was made. */
  joined(machine: Machine, machineClass: MachineClass | undefined, durationMs: number): void;
  /** A VM was deleted, so long after that was asked for. */
  deleted(machine: Machine, machineClass: MachineClass | undefined, durationMs: number): void;
  /** A Node was drained; by force: pods were deleted instead of evicted. */
  drained(machine: Machine, durationMs: number, isForced: boolean): void;
  failed(reason: FailureReason): void;
  failedToJoin(machine: Machine, machineClass: MachineClass | undefined): void;
}

const MACHINE_LABELS = ['namespace', 'machine_deployment', 'instance_type', 'zone'] as const;
type MachineLabel = (typeof MACHINE_LABELS)[number];

/** Values of the phase gauge; every other phase is 0, as in the original. */
const PHASE_VALUES: Readonly<Record<string, number>> = {
  Terminating: -4,
  Failed: -3,
  CrashLoopBackOff: -2,
  Unknown: -1,
  Pending: 0,
  Running: 1,
};
/** Seconds: from what a simulated cloud takes to the longest drain. */
const BUCKETS = [1, 5, 15, 30, 60, 120, 300, 600, 1_200, 3_600, 7_200, 21_600];
const CONDITION_VALUES: Readonly<Record<string, number>> = { True: 1, False: 0, Unknown: 2 };

/**
 * Declares the machine controller's metrics in `registry`: the original's by its names, labels and values; where it keeps the last
 * duration only, a histogram of all beside it. What tells of single
 * Machines is read from `source` at each scrape, so that nothing is left of a Machine that is gone.
 */
export function machineMetrics(registry: Registry, source: Pick<Lister<Machine>, 'list'>): MachineMetrics {
  const { counter, gauge, histogram } = declaring(registry);
  declareState(registry, source);
  const durations = declareDurations(registry);
  const allDrains = histogram('machinist_machine_drain_duration_seconds', ['forced'], BUCKETS).help(
    'Duration of drains, by whether pods were deleted in the end instead of evicted.',
  );
  const failures = counter('machinist_machines_failed_total', ['reason']).help(
    'Machines that failed, by reason: health-timeout, creation-timeout, stale-node (the VM has the name of another Node). Machines whose VM vanished are counted by machinist_vanished_vms_total.',
  );
  const drains = gauge('mcm_machine_drain_duration_seconds', ['namespace', 'machine_deployment']).help(
    'Duration of the last successful drain.',
  );
  const failedJoins = counter('mcm_machine_num_failed_join', MACHINE_LABELS).help(
    'Machines whose VM did not join as a Node within the creation timeout.',
  );
  return {
    ...durations,
    failed: (reason) => failures.inc({ reason }),
    drained(machine, durationMs, isForced) {
      allDrains.observe({ forced: String(isForced) }, durationMs / 1_000);
      const deployment = machine.metadata.labels?.[DEPLOYMENT_NAME_LABEL];
      if (deployment === undefined) return;
      drains.set(
        { namespace: machine.metadata.namespace ?? '', machine_deployment: deployment },
        wholeSeconds(durationMs),
      );
    },
    failedToJoin(machine, machineClass) {
      const labels = labelsOf(machine, machineClass);
      if (labels !== undefined) failedJoins.inc(labels);
    },
  };
}

type Durations = Pick<MachineMetrics, 'created' | 'initialized' | 'joined' | 'deleted'>;

function declareDurations(registry: Registry): Durations {
  const { gauge: declareGauge, histogram } = declaring(registry);
  const duration = (name: string, help: string, all?: Histogram<'provider'>): Durations[keyof Durations] => {
    const gauge = declareGauge(`mcm_machine_${name}_duration_seconds`, MACHINE_LABELS).help(help);
    return (machine, machineClass, durationMs) => {
      all?.observe({ provider: machineClass?.provider ?? '' }, durationMs / 1_000);
      const labels = labelsOf(machine, machineClass);
      if (labels !== undefined) gauge.set(labels, wholeSeconds(durationMs));
    };
  };
  const every = (name: string, help: string): Histogram<'provider'> =>
    histogram(`machinist_machine_${name}_duration_seconds`, ['provider'], BUCKETS).help(help);
  return {
    created: duration(
      'create',
      'Time from the creation of the last Machine until its VM was created.',
      every('creation', 'Time from the creation of Machines until their VM was created.'),
    ),
    initialized: duration('initialize', 'Duration of the last InitializeMachine.'),
    joined: duration(
      'join',
      'Time from the creation of the last Machine until it was Running.',
      every('join', 'Time from the creation of Machines until they were Running.'),
    ),
    deleted: duration(
      'delete',
      'Time from the deletion of the last Machine until its VM was deleted.',
      every('deletion', 'Time from the deletion of Machines until their VM was deleted.'),
    ),
  };
}

function declareState(registry: Registry, source: Pick<Lister<Machine>, 'list'>): void {
  const { series } = declaring(registry);
  series('mcm_machine_items_total', 'Machines in the namespace.', [], () => [[{}, source.list().length]]);
  series(
    'mcm_machine_current_status_phase',
    'Phase of a Machine: -4 Terminating, -3 Failed, -2 CrashLoopBackOff, -1 Unknown, 0 Pending and any other, 1 Running.',
    NAMED,
    () =>
      source
        .list()
        .map((machine) => [objectNameLabels(machine), PHASE_VALUES[machine.status?.currentStatus?.phase ?? ''] ?? 0]),
  );
  series('mcm_machine_info', 'A Machine; the value is always 1.', INFO_LABELS, () =>
    source.list().map((machine) => [infoOf(machine), 1]),
  );
  series(
    'mcm_machine_status_condition',
    "Condition of a Machine's Node: 1 True, 0 False, 2 Unknown.",
    [...NAMED, 'condition'],
    () =>
      source
        .list()
        .flatMap((machine) =>
          (machine.status?.conditions ?? []).map(
            ({ type, status }) =>
              [{ ...objectNameLabels(machine), condition: type }, CONDITION_VALUES[status] ?? 2] as const,
          ),
        ),
  );
}

const INFO_LABELS = [
  ...NAMED,
  'createdAt',
  'spec_provider_id',
  'spec_class_api_group',
  'spec_class_kind',
  'spec_class_name',
  'node_name',
] as const;

function infoOf(machine: Machine): Record<(typeof INFO_LABELS)[number], string> {
  const { metadata, spec } = machine;
  return {
    ...objectNameLabels(machine),
    createdAt: String(wholeSeconds(fromTimestamp(metadata.creationTimestamp) ?? 0)),
    spec_provider_id: providerIDOf({ spec }),
    spec_class_api_group: spec?.class?.apiGroup ?? '',
    spec_class_kind: spec?.class?.kind ?? '',
    spec_class_name: spec?.class?.name ?? '',
    node_name: nodeNameOf({ metadata }),
  };
}

/**
 * Undefined for a Machine without the MachineDeployment's name in label `name`: it has no series, as in the original. A class
 * without nodeTemplate has no instance type to tell, and is no reason to fail.
 */
function labelsOf(machine: Machine, machineClass: MachineClass | undefined): Record<MachineLabel, string> | undefined {
  const deployment = machine.metadata.labels?.[DEPLOYMENT_NAME_LABEL];
  if (deployment === undefined) return undefined;
  return {
    namespace: machine.metadata.namespace ?? '',
    machine_deployment: deployment,
    instance_type: machineClass?.nodeTemplate?.instanceType ?? '',
    zone: machine.spec?.nodeTemplate?.metadata?.labels?.[ZONE_LABEL] ?? '',
  };
}

function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1_000);
}
