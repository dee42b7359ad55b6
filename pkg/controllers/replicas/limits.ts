import { resolveIntOrPercent } from '../../apis/int-or-percent.ts';
import type { MachineDeploymentSpec } from '../../apis/machine/v1alpha1/machine-deployment.ts';

/** How far a rollout may go, resolved to numbers of Machines. */
export interface RolloutLimits {
  readonly replicas: number;
  /** How many may exist beyond that. */
  readonly surge: number;
  /** How many may be missing. */
  readonly unavailable: number;
}

/**
 * Resolves the limits of a MachineDeployment: surge rounds up, unavailable rounds down and is at most `replicas`. When both
 * come to nothing one Machine may be missing, or no rollout would ever move.
 *
 * | strategy | surge | unavailable |
 * |---|---|---|
 * | RollingUpdate, InPlaceUpdate Auto | as written | as written |
 * | InPlaceUpdate Manual | 0 | as written |
 * | Recreate | 0 | 0 |
 */
export function rolloutLimitsOf(spec: MachineDeploymentSpec): RolloutLimits {
  const replicas = spec.replicas ?? 0;
  const { type, rollingUpdate, inPlaceUpdate } = spec.strategy ?? {};
  const limits = type === 'InPlaceUpdate' ? inPlaceUpdate : type === 'RollingUpdate' ? rollingUpdate : undefined;
  if (limits === undefined) return { replicas, surge: 0, unavailable: 0 };

  const isManual = type === 'InPlaceUpdate' && inPlaceUpdate?.orchestrationType === 'Manual';
  const surge = isManual ? 0 : (resolveIntOrPercent(limits.maxSurge ?? 0, replicas, 'up') ?? 0);
  const unavailable = resolveIntOrPercent(limits.maxUnavailable ?? 0, replicas, 'down') ?? 0;
  return { replicas, surge, unavailable: Math.min(replicas, surge === 0 && unavailable === 0 ? 1 : unavailable) };
}

/**
 * How many Machines must stay available. What has failed and is preserved is missing anyway: were it not allowed for, a rollout
 * without `unavailable` would stand still for as long as somebody keeps one such Machine.
 */
export function leastAvailable({ replicas, unavailable }: RolloutLimits, preservedFailed: number): number {
  return Math.max(0, replicas - unavailable - preservedFailed);
}

/** The surge that annotations and proportional scaling work with: only a RollingUpdate has one. */
export function annotatedSurge(spec: MachineDeploymentSpec): number {
  return spec.strategy?.type === 'RollingUpdate' ? rolloutLimitsOf(spec).surge : 0;
}
