import { resizeSets } from '../scaling/resize.ts';
import { scale, scalingFactsOf } from '../scaling/scaling.ts';
import { sumOf, withoutRaises } from '../sets/set-facts.ts';
import type { DeploymentPass } from '../step.ts';
import { scaleOldSets } from './old-sets.ts';
import type { RolloutDeps } from './rollout.ts';

/**
 * Obeys the replicas while a rollback is refused. No set is the new one then: what is wanted more comes of a template that works, if there is one.
 * What exists beyond them stays, unless fewer are wanted: the rollback may be accepted the next time. A Recreate, which has no surge, keeps all
 * of that, and makes none beside Machines of before.
 */
export async function scaleAsRolledBack(deps: RolloutDeps, pass: DeploymentPass): Promise<boolean> {
  const facts = scalingFactsOf(pass.observed);
  const { newSet, oldSets, strategy, limits } = facts;
  const sets = newSet === undefined ? oldSets : [newSet, ...oldSets];
  const isRecreate = strategy === 'Recreate';
  const beyond = Math.max(0, sumOf(sets, ({ size }) => size) - limits.replicas);
  const isLowered = sets.some(({ size, desiredNote = size }) => size > 0 && desiredNote > limits.replicas);
  const surge = isLowered ? 0 : isRecreate ? beyond : limits.surge;
  if (strategy === 'InPlaceUpdate') return await scaleOldSets(deps, pass, surge);
  const asOld = { newSet: undefined, oldSets: sets, strategy: 'RollingUpdate', isPaused: true };
  const { sizes, noted } = scale({ ...facts, ...asOld, limits: { ...limits, surge } });
  const scaling = { sizes: withoutRaises(sizes, facts, isRecreate && isRecreating(facts)), noted };
  return await resizeSets(deps, pass.observed, scaling, pass.signal);
}

/** Whether a Recreate has begun, and Machines of before are there, which may be going. */
function isRecreating({ newSet, oldSets }: ReturnType<typeof scalingFactsOf>): boolean {
  const isGrowing = (newSet?.size ?? 0) > 0;
  return oldSets.some(({ size, existing }) => existing > 0 && (isGrowing || size === 0));
}
