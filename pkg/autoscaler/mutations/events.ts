import { ServerError, Status } from '../rpc-error.ts';

import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { ObjectEvent } from '../../controllers/replicas/events.ts';
import { describeMutated, type Mutated } from '../mutations.ts';

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

/** Whether it was refused for what was asked, and not for want of an answer. */
export function isRefused(err: unknown): err is ServerError {
  return (
    err instanceof ServerError && (err.code === Status.INVALID_ARGUMENT || err.code === Status.FAILED_PRECONDITION)
  );
}
