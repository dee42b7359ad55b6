import { ServerError, Status } from '../rpc-error.ts';

import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { ObjectEvent } from '../../controllers/replicas/events.ts';
import { ApiError, isTooManyRequests, mayHaveHappened } from '../../kube/client/errors.ts';
import { describeMutated, type Mutated } from '../mutations.ts';

const REFUSALS: ReadonlySet<Status> = new Set([Status.INVALID_ARGUMENT, Status.FAILED_PRECONDITION]);

/** An autoscaler made a group smaller; `peer` says which. */
export function scaleDownAccepted(
  object: MachineDeployment,
  peer: string,
  mutated: Mutated,
): ObjectEvent<MachineDeployment> {
  const message = `Autoscaler ${peer} scaled down: ${describeMutated(mutated)}`;
  return { object, type: 'Normal', reason: 'ScaleDownAccepted', message };
}

/** An autoscaler wanted to make a group smaller, and nothing was changed. */
export function scaleDownRefused(object: MachineDeployment, peer: string, why: string): ObjectEvent<MachineDeployment> {
  return {
    object,
    type: 'Warning',
    reason: 'ScaleDownRefused',
    message: `Refused to scale down for autoscaler ${peer}: ${why}`,
  };
}

/** Why it was refused: for what was asked, or by the API server or a webhook of it; undefined when only an answer is wanting. */
export function whyRefused(err: unknown): string | undefined {
  if (err instanceof ServerError) return REFUSALS.has(err.code) ? err.details : undefined;
  const message = err instanceof ApiError ? err.message : undefined;
  return mayHaveHappened(err) || isTooManyRequests(err) ? undefined : message;
}
