import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import {
  MAINTENANCE_ANNOTATION,
  MAINTENANCE_NODE_ANNOTATION,
  MAINTENANCE_SINCE_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import { isUnderMaintenance } from '../../machine-facts/maintenance.ts';
import { leastAvailable } from '../../replicas/limits.ts';
import { isFailed, isTerminating } from '../../replicas/machine-state.ts';
import { growNewSet, shrinkOldSets } from './rolling.ts';
import { sumOf, type SetFacts } from '../sets/set-facts.ts';
import type { Observed } from '../observed.ts';
import { namedUpTo } from '../../../apis/short-text.ts';

const MAX_NAMED = 5;

/** The sets of a rollout whose new set exists. */
type Sets = Observed['facts'] & { readonly newSet: SetFacts };

type Rollout = Pick<
  Observed,
  'deployment' | 'newSet' | 'oldSets' | 'machinesOf' | 'facts' | 'factsAs' | 'limits' | 'isFrozen'
>;

/**
 * Says that a rollout stands still because of machines in maintenance, which are not available: nothing else is on its way, and it would go
 * on, or be complete, if they were available. Undefined when that is not so. Judges no update in place for which a person selects the Nodes.
 */
export function maintenanceHold(observed: Rollout): string | undefined {
  const { newSet, oldSets, machinesOf, factsAs } = observed;
  const machines = [...oldSets, ...(newSet === undefined ? [] : [newSet])].flatMap(machinesOf);
  const away = machines.filter(isAway);
  if (away.length === 0) return undefined;
  const now = withNewSet(observed.facts);
  const ended = withNewSet(factsAs((machine) => (isAway(machine) ? asAvailable(machine) : machine)));
  if (now === undefined || ended === undefined || !isSettled(ended)) return undefined;

  const hasOthers = oldSets.flatMap(machinesOf).some((machine) => !isAway(machine));
  const isHeld =
    isAtEnd(now, observed) || (!canContinue(now, observed, hasOthers) && canContinue(ended, observed, true));
  return isHeld ? describe(away.map(({ metadata }) => metadata.name).toSorted()) : undefined;
}

/** One that has failed is replaced, in maintenance or not. */
function isAway(machine: Machine): boolean {
  return isUnderMaintenance(machine) && !isFailed(machine) && !isTerminating(machine);
}

function asAvailable(machine: Machine): Machine {
  const over = new Set([MAINTENANCE_ANNOTATION, MAINTENANCE_SINCE_ANNOTATION, MAINTENANCE_NODE_ANNOTATION]);
  const annotations = Object.fromEntries(
    Object.entries(machine.metadata.annotations ?? {}).filter(([key]) => !over.has(key)),
  );
  const currentStatus = { ...machine.status?.currentStatus, phase: 'Running' as const };
  return { ...machine, metadata: { ...machine.metadata, annotations }, status: { ...machine.status, currentStatus } };
}

function withNewSet({ newSet, oldSets }: Observed['facts']): Sets | undefined {
  return newSet && { newSet, oldSets };
}

/** No machine comes, goes, or is waited for. */
function isSettled({ newSet, oldSets }: Sets): boolean {
  return [newSet, ...oldSets].every(({ size, existing, available }) => existing === size && available === size);
}

/** All is of the new template. */
function isAtEnd({ newSet, oldSets }: Sets, { limits }: Rollout): boolean {
  return newSet.size === limits.replicas && sumOf(oldSets, ({ existing }) => existing) === 0;
}

/** Whether a step is possible. `hasOthers`: old machines that an update in place may select. */
function canContinue(
  { newSet, oldSets }: Sets,
  { deployment, limits, isFrozen }: Rollout,
  hasOthers: boolean,
): boolean {
  const { type, inPlaceUpdate } = deployment.spec.strategy ?? {};
  const isFull = newSet.size >= limits.replicas;
  if (type === 'RollingUpdate' || isFull) {
    const grows = growNewSet(newSet, oldSets, limits, isFrozen).size > 0;
    return grows || shrinkOldSets(newSet, oldSets, limits).size > 0;
  }
  if (inPlaceUpdate?.orchestrationType !== 'Auto') return true;
  const available = sumOf([newSet, ...oldSets], (set) => set.available);
  return hasOthers && available > leastAvailable(limits, 0);
}

function describe(names: readonly string[]): string {
  const named = namedUpTo(MAX_NAMED, names, ', and');
  const machines = names.length === 1 ? 'machine' : 'machines';
  return `Waiting for the end of maintenance of ${names.length} unavailable ${machines}: ${named}.`;
}
