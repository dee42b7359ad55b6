import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { equalTemplate } from '../../apis/machine/v1alpha1/template-equality.ts';
import { FREEZE_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import { keyOf } from '../../apis/meta.ts';
import { fromTimestamp } from '../../base/clock/clock.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { CONTROLLER_INDEX } from '../../operator/indexes/owner-index.ts';
import type { MachineDeploymentDeps } from './step.ts';
import { chosenIn, unacknowledged, type Choice } from './scaling/scaler-handoff.ts';
import { hashesOf, isChangedCopy } from './sets/changed-copy.ts';
import { claimsOn } from './sets/set-claims.ts';
import { byAge, factsOf, type SetFacts } from './sets/set-facts.ts';
import { rolloutLimitsOf, type RolloutLimits } from '../replicas/limits.ts';

/** A MachineDeployment and all that it owns, as the caches show it at one moment, our own writes included. */
export interface Observed {
  readonly deployment: MachineDeployment;
  /** All that it controls and selects. */
  readonly sets: readonly MachineSet[];
  /** The set of the present template. */
  readonly newSet: MachineSet | undefined;
  /** All other sets, oldest first. */
  readonly oldSets: readonly MachineSet[];
  readonly facts: { readonly newSet: SetFacts | undefined; readonly oldSets: readonly SetFacts[] };
  /** What the facts would be with other Machines in the place of its own. */
  readonly factsAs: (view: (machine: Machine) => Machine) => Observed['facts'];
  readonly limits: RolloutLimits;
  /** Held back by the overshoot safety: no set is created or raised. */
  readonly isFrozen: boolean;
  readonly machinesOf: (set: MachineSet) => readonly Machine[];
  /** What it was made from. */
  readonly seen: readonly (readonly object[])[];
  /** Machines of `set` that an autoscaler has named and that the set does not know of yet. */
  readonly untold: (set: MachineSet) => readonly Choice[];
}

/** Looks at the caches; returns `before` if they still show the same. */
export function observeDeployment(
  deps: Pick<MachineDeploymentDeps, 'machineSets' | 'machines' | 'clock'>,
  deployment: MachineDeployment,
  before?: Observed,
): Observed {
  const owned = deps.machineSets.byIndex(CONTROLLER_INDEX, deployment.metadata.uid);
  const machinesNow = owned.map(({ metadata }) => deps.machines.byIndex(CONTROLLER_INDEX, metadata.uid));
  // Cached objects never change, nor do the lists of an index.
  const seen = [[deployment], owned, ...machinesNow];
  if (before !== undefined && isSame(before.seen, seen)) return before;

  const sets = claimedSets(deps, deployment);
  const newSet = findNewSet(deployment, sets);
  const oldSets = oldestFirst(sets.filter((set) => set !== newSet));
  const machinesOf = (set: MachineSet): readonly Machine[] => deps.machines.byIndex(CONTROLLER_INDEX, set.metadata.uid);
  const nowMs = deps.clock.now();
  let choices: readonly Choice[] | undefined;
  const untold = (set: MachineSet): readonly Choice[] =>
    unacknowledged(set, (choices ??= chosenIn(deployment, sets.flatMap(machinesOf), nowMs)));
  const factsAs = (view: (machine: Machine) => Machine): Observed['facts'] => {
    const hashes = Object.values(hashesOf(deployment));
    const facts = (set: MachineSet): SetFacts => {
      const isReplaced = !equalTemplate(set.spec?.template, deployment.spec.template);
      const isChanged = isReplaced && isChangedCopy(deployment, set, hashes);
      const named = new Set(untold(set).map(({ machine }) => machine.metadata.name));
      return factsOf(set, machinesOf(set).map(view), { isReplaced, isChanged, named }, nowMs);
    };
    return { newSet: newSet && facts(newSet), oldSets: oldSets.map(facts) };
  };
  let facts: Observed['facts'] | undefined;
  return {
    deployment,
    sets,
    newSet,
    oldSets,
    // A pass observes several times, and does not always ask.
    get facts() {
      return (facts ??= factsAs((machine) => machine));
    },
    factsAs,
    limits: rolloutLimitsOf(deployment.spec),
    isFrozen: deployment.metadata.labels?.[FREEZE_LABEL] === 'True',
    machinesOf,
    seen,
    untold,
  };
}

/**
 * Looks at the caches once more, after writes: they may have taken minutes, in which Machines have changed. Undefined when the MachineDeployment
 * itself has: its replicas, a pause or what an autoscaler has chosen are obeyed by a pass that has seen them.
 */
export function observeAgain(
  deps: Pick<MachineDeploymentDeps, 'machineDeployments' | 'machineSets' | 'machines' | 'clock'>,
  before: Observed,
): Observed | undefined {
  const { deployment } = before;
  // What a write has returned is not the very object that the cache holds.
  const { uid, resourceVersion } = deps.machineDeployments.get(keyOf(deployment))?.metadata ?? {};
  if (uid !== deployment.metadata.uid || resourceVersion !== deployment.metadata.resourceVersion) return undefined;
  return observeDeployment(deps, deployment, before);
}

/** The set whose template is the MachineDeployment's; of several the oldest. All others are old sets. */
export function findNewSet(deployment: MachineDeployment, sets: readonly MachineSet[]): MachineSet | undefined {
  return oldestFirst(sets).find((set) => equalTemplate(set.spec?.template, deployment.spec.template));
}

/** Sets from the oldest to the newest; equally old ones by name. */
function oldestFirst(sets: readonly MachineSet[]): MachineSet[] {
  return sets.toSorted((a, b) => byAge(ageOf(a), ageOf(b)));
}

function ageOf({ metadata }: MachineSet): { createdMs: number; name: string } {
  return { createdMs: fromTimestamp(metadata.creationTimestamp) ?? 0, name: metadata.name };
}

function isSame(before: Observed['seen'], now: Observed['seen']): boolean {
  const isSameList = (list: readonly object[], i: number): boolean =>
    list.length === before[i]?.length && (list === before[i] || list.every((one, n) => one === before[i]?.[n]));
  return before.length === now.length && now.every(isSameList);
}

export function ownedMachines(
  deps: { readonly machineSets: Lister<MachineSet>; readonly machines: Lister<Machine> },
  deployment: MachineDeployment,
): readonly Machine[] {
  const sets = claimedSets(deps, deployment);
  return sets.flatMap(({ metadata }) => deps.machines.byIndex(CONTROLLER_INDEX, metadata.uid));
}

/** The sets that `deployment` controls and selects; nothing is adopted or released. */
export function claimedSets(
  { machineSets }: { readonly machineSets: Lister<MachineSet> },
  deployment: MachineDeployment,
): readonly MachineSet[] {
  return claimsOn(deployment, machineSets.byIndex(CONTROLLER_INDEX, deployment.metadata.uid)).claimed;
}
