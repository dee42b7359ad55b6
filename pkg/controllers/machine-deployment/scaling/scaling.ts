import { takeFree, takeInOrder } from './take-free.ts';
import { byAge, setToGrow, sumOf, type Resizes, type SetFacts } from '../sets/set-facts.ts';
import { grownSize } from './size-rule.ts';
import type { RolloutLimits } from '../../replicas/limits.ts';
import type { Observed } from '../observed.ts';

export interface ScalingFacts {
  readonly newSet: SetFacts | undefined;
  readonly oldSets: readonly SetFacts[];
  readonly strategy: string;
  readonly limits: RolloutLimits;
  /** Paused, waiting for its turn, or without a rollout to the new template: sets of old templates grow. */
  readonly isPaused: boolean;
  /** Held back by the overshoot safety: no set is raised, but to what it has, which creates nothing. */
  readonly isFrozen: boolean;
  /** The new template is to be rolled back from: that its set has all takes nothing of the others. */
  readonly isRollingBack?: boolean;
}

export function scalingFactsOf({
  facts,
  limits,
  deployment: { spec },
  isFrozen,
}: Pick<Observed, 'facts' | 'limits' | 'deployment' | 'isFrozen'>): ScalingFacts {
  return { ...facts, strategy: spec.strategy?.type ?? '', limits, isPaused: spec.paused === true, isFrozen };
}

export interface Scaling {
  readonly sizes: Resizes;
  /** Sets that take note of the present replicas, by which the next change of replicas will be seen. */
  readonly noted: readonly string[];
}

/**
 * Whether the number of replicas was changed since the sets were last scaled: an active set (one with Machines to keep)
 * noted another number, or nothing is active although Machines are wanted. While Machines of old sets are still going, an
 * empty new set is the business of the rollout, which keeps to the surge.
 *
 * Without a new set only fewer replicas are: what is wanted more is of the new template, and waits for its set. What is not wanted any more does
 * not: that set may be refused, or held back by a freeze that ends only when Machines have gone. A set that was adopted has noted nothing, and
 * counts with its size.
 */
export function isScalingEvent({ newSet, oldSets, limits }: ScalingFacts): boolean {
  if (newSet === undefined) {
    return oldSets.some((set) => isActive(set) && (set.desiredNote ?? set.size) > limits.replicas);
  }
  const active = [newSet, ...oldSets].filter(isActive);
  if (active.length === 0) return limits.replicas > 0 && sumOf(oldSets, ({ existing }) => existing) === 0;
  return active.some(({ desiredNote }) => desiredNote !== undefined && desiredNote !== limits.replicas);
}

/**
 * Spreads a changed number of replicas over the sets.
 *
 * | active sets | what happens |
 * |---|---|
 * | none or one | it gets all replicas; during a rollout an old one is not raised, the new set grows instead |
 * | several, the new one has all | the old ones go to 0, unless it is to be rolled back from |
 * | several, more wanted | the new set gets the difference, at most up to the replicas |
 * | several, fewer wanted | first go replicas without a Machine, then unavailable Machines; then each gives up its share, the largest what rounding leaves; in place, the oldest set does |
 *
 * Before that each set gives up the Machines of its own that an autoscaler has named. With a Recreate several active sets
 * only take note: the rollout itself moves the Machines.
 */
export function scale(facts: ScalingFacts): Scaling {
  const { newSet, oldSets } = facts;
  const sets = newSet === undefined ? oldSets : [newSet, ...oldSets];
  const active = sets.filter(isActive);
  const sizes = active.length > 1 ? spread(facts, active) : scaleOnly(facts, active[0]);
  const before = new Map(sets.map(({ name, size }) => [name, size]));
  const changed = [...sizes].filter(([name, size]) => size !== before.get(name));
  const held = facts.isFrozen ? changed.filter(([name, size]) => size > (before.get(name) ?? 0)) : [];
  const takenBack = held.flatMap(([name, size]) => {
    const living = sets.find((set) => set.name === name)?.living ?? 0;
    const most = Math.min(size, living);
    return most > (before.get(name) ?? 0) ? [[name, most] as const] : [];
  });

  const noted = new Set([...active.map(({ name }) => name), ...sizes.keys()]);
  // A set that is held back keeps its old note, or the change of replicas would be forgotten.
  for (const [name, size] of held) if (!takenBack.some((to) => to[0] === name && to[1] === size)) noted.delete(name);
  return { sizes: new Map([...changed.filter((change) => !held.includes(change)), ...takenBack]), noted: [...noted] };
}

function isActive({ size }: SetFacts): boolean {
  return size > 0;
}

function scaleOnly({ newSet, oldSets, limits, isPaused }: ScalingFacts, active?: SetFacts): Resizes {
  const target = active ?? newSet ?? setToGrow(oldSets);
  if (target === undefined) return new Map();
  const isRollout = target !== newSet && !isPaused;
  const size = isRollout ? Math.min(withoutNamed(target).size, limits.replicas) : limits.replicas;
  return new Map([[target.name, size]]);
}

function spread(facts: ScalingFacts, active: readonly SetFacts[]): Resizes {
  const { newSet, oldSets, strategy, limits, isPaused, isRollingBack = false } = facts;
  const { replicas, surge } = limits;
  if (newSet !== undefined && !isRollingBack && isSaturated(newSet, replicas)) {
    return new Map(active.filter((set) => set !== newSet).map(({ name }) => [name, 0]));
  }
  if (strategy === 'Recreate') return new Map();

  const left = active.map(withoutNamed);
  const sizes = new Map(left.map(({ name, size }) => [name, size]));
  // Without a new set there is nothing that the surge is for.
  const isWithoutSurge = replicas === 0 || (newSet === undefined && !isPaused);
  const allowed = replicas + (isWithoutSurge ? 0 : surge);
  const total = sumOf(left, ({ size }) => size);
  if (total > allowed) {
    const shrunk =
      strategy === 'InPlaceUpdate'
        ? shrinkOldest(left, newSet, total - allowed)
        : shrinkInProportion(left, limits, total - allowed, allowed);
    return new Map([...sizes, ...shrunk]);
  }
  if (newSet !== undefined) {
    if (strategy !== 'RollingUpdate') return sizes;
    return sizes.set(newSet.name, grownSize(withoutNamed(newSet), oldSets.map(withoutNamed), limits));
  }
  // Without a rollout an old set makes what is missing, whatever the strategy.
  const growing = isPaused ? setToGrow(left) : undefined;
  return growing === undefined ? sizes : sizes.set(growing.name, growing.size + Math.max(0, replicas - total));
}

/** What an autoscaler has named goes from its own set, whatever the shares are. */
function withoutNamed(set: SetFacts): SetFacts {
  return { ...set, size: Math.max(0, set.size - set.named) };
}

/**
 * In place nothing is won by taking Machines that were updated already: after what costs no available Machine, the oldest sets give up all,
 * the new one the rest. A Machine that was just moved, and that its new set does not count yet, is not missing in its old one.
 */
function shrinkOldest(active: readonly SetFacts[], newSet: SetFacts | undefined, excess: number): Resizes {
  const isNew = ({ name }: SetFacts): boolean => name === newSet?.name;
  const oldestFirst = active.toSorted((a, b) => Number(isNew(a)) - Number(isNew(b)) || byAge(a, b));
  let moved = newSet === undefined ? 0 : Math.max(0, newSet.living - newSet.size);
  const counted = oldestFirst.map((set) => {
    const gone = isNew(set) ? 0 : Math.min(moved, set.missing);
    moved -= gone;
    return { ...set, missing: set.missing - gone, free: set.free - gone };
  });
  // The newest templates are those of which nothing can be created.
  const { sets, left } = takeFree(counted.toReversed(), excess);
  return takeInOrder(sets.toReversed(), left);
}

/**
 * What has to be done about named Machines when the number of replicas is what it was: an old set of a rollout gives them up,
 * and the new one grows in its place; any other set only learns of them, and replaces them.
 */
export function replaceNamed({ newSet, oldSets, strategy, isPaused }: ScalingFacts): Scaling {
  const old = oldSets.filter(({ named }) => named > 0);
  const noted = [...old, ...(newSet === undefined || newSet.named === 0 ? [] : [newSet])].map(({ name }) => name);
  if (newSet === undefined || strategy === 'Recreate' || isPaused) return { sizes: new Map(), noted };
  return { sizes: new Map(old.map((set) => [set.name, withoutNamed(set).size])), noted };
}

function isSaturated({ size, desiredNote, available }: SetFacts, replicas: number): boolean {
  return size === replicas && desiredNote === replicas && available === replicas;
}

/** Takes `excess` from the sets, so that exactly `allowed` stay: first what costs no available Machine, the rest largest first. */
function shrinkInProportion(
  active: readonly SetFacts[],
  { replicas }: RolloutLimits,
  excess: number,
  allowed: number,
): Resizes {
  const existing = sumOf(active, (set) => set.existing);
  const free = takeFree(active.toSorted(byAge), excess);
  let { left } = free;
  const largestFirst = free.sets.toSorted((a, b) => b.size - a.size || byAge(a, b));
  const shrunk = largestFirst.map(({ name, size, maxNote }) => {
    const whole = maxNote ?? existing;
    const share = replicas === 0 || whole <= 0 ? size : size - Math.round((size * allowed) / whole);
    const loss = Math.max(0, Math.min(share, left, size));
    left -= loss;
    return { name, size: size - loss };
  });
  return takeInOrder(shrunk, left);
}
