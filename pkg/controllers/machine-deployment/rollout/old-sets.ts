import type { Observed } from '../observed.ts';
import { resizeSets } from '../scaling/resize.ts';
import { scale, scalingFactsOf } from '../scaling/scaling.ts';
import { sumOf } from '../sets/set-facts.ts';
import type { DeploymentPass } from '../step.ts';
import { isToBegin } from './rollout-begin.ts';
import type { RolloutDeps } from './rollout.ts';

/**
 * Obeys the replicas where there is no rollout, as while it is paused: sets of old templates grow. A new one that is there gets what all lack, also in
 * place, where the rollout would make that. At most `surge` exist beyond the replicas. Returns whether anything was written.
 */
export function scaleOldSets(deps: RolloutDeps, pass: DeploymentPass, surge: number): Promise<boolean> {
  const { observed, signal, isCutShort: isRollingBack = false } = pass;
  const limits = { ...observed.limits, surge };
  // The new set of an update in place that has begun makes what old ones have lost: these would get it here, and lose it there, in turns.
  const facts = { ...scalingFactsOf(observed), limits, isPaused: !hasBegunInPlace(observed), isRollingBack };
  const { newSet, oldSets } = facts;
  const staying = sumOf(newSet === undefined ? oldSets : [newSet, ...oldSets], ({ size, named }) => size - named);
  const filled = { ...facts, strategy: 'RollingUpdate', limits: { ...limits, surge: 0 } };
  return resizeSets(deps, observed, scale(staying < limits.replicas ? filled : facts), signal);
}

/** Whether an update in place has begun: its new set makes what is lacking. */
export function hasBegunInPlace(observed: Observed): boolean {
  const isInPlace = observed.deployment.spec.strategy?.type === 'InPlaceUpdate';
  return isInPlace && observed.newSet !== undefined && !isToBegin(observed);
}
