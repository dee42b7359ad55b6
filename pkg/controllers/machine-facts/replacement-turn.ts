import { phaseOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { isUnderMaintenance } from './maintenance.ts';
import type { ReplacementBudget } from './replacement-budget.ts';
import type { PaceFacts } from './pace.ts';
import { healthTimeoutMsOf, type MachineSettings } from './settings.ts';
import { keyOfZone, unhealthyTogether, zoneOf, type ZoneDeps, zoneStates, type Zone } from './zones.ts';

export interface TurnDeps extends ZoneDeps {
  readonly machines: Pick<Lister<Machine>, 'list'>;
  readonly budget: Pick<ReplacementBudget, 'poolOf'>;
  readonly settings: Pick<MachineSettings, 'healthTimeoutMs' | 'zoneUnhealthyThreshold'>;
}

/** The machine's zone, if it is one of which no machine is replaced just now. */
export function stoppedZoneOf(deps: TurnDeps, machine: Machine): Zone | undefined {
  const zone = zoneOf(deps, machine);
  const states = zoneStates(deps, deps.machines.list(), deps.settings.zoneUnhealthyThreshold);
  const state = states.find((one) => keyOfZone(one.zone) === keyOfZone(zone));
  return state?.isStopped === true ? zone : undefined;
}

/** What the pace of its replacement follows from; undefined for a machine that nobody replaces. */
export function paceFactsOf(
  deps: TurnDeps,
  machine: Machine,
  isLost?: (other: Machine) => boolean,
): PaceFacts | undefined {
  return deps.budget.poolOf(machine) === undefined ? undefined : deletionPaceOf(deps, machine, isLost);
}

/**
 * The same of its deletion: a machine that nobody replaces is a pool of its own. `isLost`: which machines are as bad as unhealthy ones, although
 * no Node says so.
 */
export function deletionPaceOf(deps: TurnDeps, machine: Machine, isLost?: (other: Machine) => boolean): PaceFacts {
  const { budget, machines, settings } = deps;
  const { uid } = machine.metadata;
  const { key, limit, others } = budget.poolOf(machine) ?? { key: uid, limit: 1, others: [] };
  const unhealthy = others.filter((other) => isUnhealthy(other) || isLost?.(other)).length + 1;
  const together = unhealthyTogether(deps, machine, machines.list(), isLost);
  const zone = { key: keyOfZone(zoneOf(deps, machine)), together };
  return { uid, pool: { key, unhealthy, limit }, zone, healthTimeoutMs: healthTimeoutMsOf(machine, settings) };
}

/** One in maintenance may be down on purpose. */
function isUnhealthy(machine: Machine): boolean {
  return phaseOf(machine) === 'Unknown' && !isBeingDeleted(machine) && !isUnderMaintenance(machine);
}
