import { resolveIntOrPercent } from '../../../apis/int-or-percent.ts';
import { replicasOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';

export interface OvershootLimits {
  /** From so many on it is frozen. */
  readonly high: number;
  /** At so many, or fewer, it is unfrozen. */
  readonly low: number;
}

/** `--safety-up` and `--safety-down`. */
export interface Margins {
  readonly up: number;
  readonly down: number;
}

/**
 * The limits of a set, as in the original: with a MachineDeployment its replicas and surge (that of `rollingUpdate` if there
 * is one, else of `inPlaceUpdate`, else none), alone twice its own replicas; plus `up`. They hold for each set by itself.
 */
export function overshootLimitsOf(
  set: Pick<MachineSet, 'spec'>,
  deployment: Pick<MachineDeployment, 'spec'> | undefined,
  { up, down }: Margins,
): OvershootLimits {
  const wanted = deployment === undefined ? 2 * replicasOf(set) : replicasOf(deployment) + surgeOf(deployment);
  return { high: wanted + up, low: wanted + up - down };
}

function surgeOf(deployment: Pick<MachineDeployment, 'spec'>): number {
  const { rollingUpdate, inPlaceUpdate } = deployment.spec.strategy ?? {};
  const { maxSurge = 0 } = rollingUpdate ?? inPlaceUpdate ?? {};
  return resolveIntOrPercent(maxSurge, replicasOf(deployment), 'up') ?? 0;
}
