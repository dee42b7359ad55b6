import { Gauge, type Registry } from 'prom-client';

import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { controllerOf } from '../../apis/meta.ts';
import type { Lister } from '../../cache/lister.ts';
import { fromTimestamp, type Clock } from '../../clock/clock.ts';
import { nameOf } from '../../metrics/object-labels.ts';
import { NAMED } from '../../metrics/owner-gauges.ts';
import { deploymentFreeze } from '../replicas/freeze-marks.ts';
import { revisionOf } from './revision.ts';

/** What the gauges are read from, at each scrape. */
export interface RolloutSource {
  readonly machineDeployments: Pick<Lister<MachineDeployment>, 'list'>;
  readonly machineSets: Pick<Lister<MachineSet>, 'list'>;
  readonly clock: Pick<Clock, 'now'>;
}

/** Declares in `registry` what the original does not tell of MachineDeployments. */
export function rolloutMetrics(registry: Registry, { machineDeployments, machineSets, clock }: RolloutSource): void {
  const registers = [registry];
  const ages = new RolloutAges();
  void new Gauge({
    name: 'machinist_machine_deployment_frozen',
    help: 'Whether a MachineDeployment is frozen because it had too many Machines: 1 or 0.',
    labelNames: NAMED,
    registers,
    collect() {
      this.reset();
      for (const one of machineDeployments.list()) {
        this.set(nameOf(one), deploymentFreeze.marksOf(one).isLabelled ? 1 : 0);
      }
    },
  });
  void new Gauge({
    name: 'machinist_machine_deployment_rollout_age_seconds',
    help: 'For how long a MachineDeployment has had Machines of an earlier template beside its newest one; 0 without any.',
    labelNames: NAMED,
    registers,
    collect() {
      this.reset();
      const sets = Map.groupBy(machineSets.list(), (set) => controllerOf(set)?.uid ?? '');
      const deployments = machineDeployments.list();
      for (const one of deployments) {
        this.set(nameOf(one), ages.ofMs(one, sets.get(one.metadata.uid) ?? [], clock.now()) / 1_000);
      }
      ages.keep(deployments);
    },
  });
}

/**
 * How long rollouts take. One began when its MachineSet was made; one back to an earlier set, after the last scrape without a rollout.
 */
export class RolloutAges {
  /** When there was no rollout for the last time, by the UID of the MachineDeployment. */
  readonly #restedMs = new Map<string, number>();

  /** The age of the present rollout; 0 when none is under way. */
  ofMs({ metadata, status }: MachineDeployment, sets: readonly MachineSet[], nowMs: number): number {
    if ((status?.replicas ?? 0) <= (status?.updatedReplicas ?? 0)) {
      this.#restedMs.set(metadata.uid, nowMs);
      return 0;
    }
    const newest = sets.toSorted((a, b) => revisionOf(b) - revisionOf(a))[0];
    const madeMs = fromTimestamp(newest?.metadata.creationTimestamp) ?? nowMs;
    return Math.max(0, nowMs - Math.max(madeMs, this.#restedMs.get(metadata.uid) ?? -Infinity));
  }

  /** Forgets those that are gone. */
  keep(deployments: readonly MachineDeployment[]): void {
    const uids = new Set(deployments.map(({ metadata }) => metadata.uid));
    for (const uid of this.#restedMs.keys()) if (!uids.has(uid)) this.#restedMs.delete(uid);
  }
}
