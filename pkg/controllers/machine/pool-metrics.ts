import type { Registry } from 'prom-client';

import { phaseOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { DEPLOYMENT_NAME_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { controllerOf, keyBeside } from '../../apis/meta.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import type { Clock } from '../../base/clock/clock.ts';
import { declaring } from '../../base/metrics/declaring.ts';
import { isUnderMaintenance } from '../machine-facts/maintenance.ts';
import { isPreserved } from '../machine-facts/preserved.ts';

export interface PoolSource {
  readonly machines: Pick<Lister<Machine>, 'list'>;
  readonly machineSets: Pick<Lister<MachineSet>, 'get'>;
  readonly clock: Pick<Clock, 'now'>;
}

const LABELS = ['namespace', 'machine_deployment'] as const;
type Pool = Record<(typeof LABELS)[number], string>;

/** Declares in `registry` how many machines each MachineDeployment has. */
export function poolMetrics(registry: Registry, { machines, machineSets, clock }: PoolSource): void {
  const { counted } = declaring(registry);
  const poolOf = (machine: Machine): Pool => ({
    namespace: machine.metadata.namespace ?? '',
    machine_deployment: deploymentOf(machine, machineSets),
  });
  counted(
    'machinist_machines',
    'Machines of a MachineDeployment by phase; a new machine has none.',
    [...LABELS, 'phase'],
    () => machines.list().map((machine) => ({ ...poolOf(machine), phase: phaseOf(machine) })),
  );
  counted('machinist_machines_preserved', 'Machines of a MachineDeployment that are preserved.', LABELS, () =>
    machines
      .list()
      .filter((machine) => isPreserved(machine, clock.now()))
      .map(poolOf),
  );
  counted(
    'machinist_machines_in_maintenance',
    'Machines of a MachineDeployment that are in maintenance, entering it, or leaving it.',
    LABELS,
    () => machines.list().filter(isUnderMaintenance).map(poolOf),
  );
}

/** By owner references; by label where MachineSets are not read. Empty for a machine of no MachineDeployment. */
function deploymentOf(machine: Machine, machineSets: PoolSource['machineSets']): string {
  const owner = controllerOf(machine);
  const set = owner?.kind === 'MachineSet' ? machineSets.get(keyBeside(machine, owner.name)) : undefined;
  const deployment = set === undefined ? undefined : controllerOf(set);
  if (deployment?.kind === 'MachineDeployment') return deployment.name;
  return machine.metadata.labels?.[DEPLOYMENT_NAME_LABEL] ?? '';
}
