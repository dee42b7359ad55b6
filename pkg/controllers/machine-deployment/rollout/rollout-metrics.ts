import type { Registry } from 'prom-client';

import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { controllerOf, type KubeObject } from '../../../apis/meta.ts';
import type { Lister } from '../../../kube/cache/lister.ts';
import { fromTimestamp, type Clock } from '../../../base/clock/clock.ts';
import { CONTROLLER_INDEX } from '../../../operator/indexes/owner-index.ts';
import { declaring } from '../../../base/metrics/declaring.ts';
import { objectNameLabels } from '../../../base/metrics/object-labels.ts';
import { NAMED } from '../../../base/metrics/owner-gauges.ts';
import { deploymentFreeze } from '../../replicas/freeze-marks.ts';
import { revisionOf } from '../sets/revision.ts';

export interface RolloutSource {
  readonly machineDeployments: Pick<Lister<MachineDeployment>, 'list'>;
  readonly machineSets: Pick<Lister<MachineSet>, 'list'>;
  readonly machines: Pick<Lister<Machine>, 'byIndex'>;
  readonly clock: Pick<Clock, 'now'>;
}

/** Declares in `registry` what the original does not tell of MachineDeployments. */
export function rolloutMetrics(registry: Registry, source: RolloutSource): void {
  const { machineDeployments, machineSets, machines, clock } = source;
  const { series } = declaring(registry);
  const ages = new RolloutAges(({ metadata }) => machines.byIndex(CONTROLLER_INDEX, metadata.uid));
  series(
    'machinist_machine_deployment_frozen',
    'Whether a MachineDeployment is frozen because it had too many Machines: 1 or 0.',
    NAMED,
    () =>
      machineDeployments.list().map((one) => [objectNameLabels(one), deploymentFreeze.marksOf(one).isLabelled ? 1 : 0]),
  );
  series(
    'machinist_machine_deployment_rollout_age_seconds',
    'Time in seconds during which a MachineDeployment has had Machines of an earlier template in addition to its newest one; 0 without any. For a rollout back to an earlier template, a process that was restarted since only knows the remaining Machines, and shows at most the true age.',
    NAMED,
    () => {
      const sets = Map.groupBy(machineSets.list(), (set) => controllerOf(set)?.uid ?? '');
      const deployments = machineDeployments.list();
      ages.keep(deployments);
      return deployments.map((one) => [
        objectNameLabels(one),
        ages.ofMs(one, sets.get(one.metadata.uid) ?? [], clock.now()) / 1_000,
      ]);
    },
  );
}

/**
 * How long rollouts take. One began when its MachineSet was made; one back to an earlier set, after the last scrape without a rollout. A
 * process that has seen no such scrape goes by the Machines: there was no rollout back as long as only one side had any.
 */
class RolloutAges {
  readonly #machinesOf: (set: MachineSet) => readonly Machine[];
  /** When there was no rollout for the last time, by the UID of the MachineDeployment. */
  readonly #restedMs = new Map<string, number>();

  constructor(machinesOf: (set: MachineSet) => readonly Machine[]) {
    this.#machinesOf = machinesOf;
  }

  /** The age of the present rollout; 0 when none is under way. */
  ofMs({ metadata: { uid }, status }: MachineDeployment, sets: readonly MachineSet[], nowMs: number): number {
    if ((status?.replicas ?? 0) <= (status?.updatedReplicas ?? 0)) {
      this.#restedMs.set(uid, nowMs);
      return 0;
    }
    const [newest, ...earlier] = sets.toSorted((a, b) => revisionOf(b) - revisionOf(a));
    if (newest === undefined) return 0;
    const madeMs = oldestMs([newest], nowMs);
    const isBack = earlier.some((set) => oldestMs([set], nowMs) > madeMs);
    const restedMs = this.#restedMs.get(uid) ?? (isBack ? this.#besideSinceMs(newest, earlier, nowMs) : madeMs);
    this.#restedMs.set(uid, restedMs);
    return Math.max(0, nowMs - Math.max(madeMs, restedMs));
  }

  /** Forgets those that are gone. */
  keep(deployments: readonly MachineDeployment[]): void {
    const uids = new Set(deployments.map(({ metadata }) => metadata.uid));
    for (const uid of this.#restedMs.keys()) if (!uids.has(uid)) this.#restedMs.delete(uid);
  }

  /** Since when there are Machines of the newest set and of earlier ones, as far as those that are left tell; now, before the first. */
  #besideSinceMs(newest: MachineSet, earlier: readonly MachineSet[], nowMs: number): number {
    const before = earlier.flatMap((set) => this.#machinesOf(set));
    return Math.max(oldestMs(this.#machinesOf(newest), nowMs), oldestMs(before, nowMs));
  }
}

function oldestMs(objects: readonly KubeObject[], nowMs: number): number {
  return Math.min(nowMs, ...objects.map(({ metadata }) => fromTimestamp(metadata.creationTimestamp) ?? nowMs));
}
