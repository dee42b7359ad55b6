import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { EventType } from '../../events/correlator.ts';
import { textOf } from '../machine-set/events.ts';
import type { ObjectEvent } from '../machine-set/events.ts';

/** Source component of these Events, as in the original. */
export const MACHINE_DEPLOYMENT_EVENT_SOURCE = 'machine-controller-manager';

/** A set was made larger or smaller. */
export function scaledSet(
  object: MachineDeployment,
  set: string,
  from: number,
  to: number,
): ObjectEvent<MachineDeployment> {
  const direction = to > from ? 'up' : 'down';
  return event(object, 'Normal', 'ScalingMachineSet', `Scaled ${direction} machine set ${set} to ${to}`);
}

/** The set of the present template could not be created. */
export function failedToCreateSet(
  object: MachineDeployment,
  set: string,
  err: unknown,
): ObjectEvent<MachineDeployment> {
  return event(object, 'Warning', 'MachineSetCreateError', `Failed to create new machine set ${set}: ${textOf(err)}`);
}

/** An empty selector would claim every set of the namespace. */
export function selectsAll(object: MachineDeployment): ObjectEvent<MachineDeployment> {
  const message = 'This deployment is selecting all machines. A non-empty selector is required.';
  return event(object, 'Warning', 'SelectingAll', message);
}

/** The template of an earlier revision is the present one again. */
export function rolledBack(object: MachineDeployment, revision: number): ObjectEvent<MachineDeployment> {
  return event(
    object,
    'Normal',
    'DeploymentRollback',
    `Rolled back deployment ${object.metadata.name} to revision ${revision}`,
  );
}

/** There is no set of the revision that was asked for. */
export function revisionNotFound(object: MachineDeployment): ObjectEvent<MachineDeployment> {
  const message = 'Unable to find the revision to rollback to.';
  return event(object, 'Warning', 'DeploymentRollbackRevisionNotFound', message);
}

/** The revision that was asked for has the present template. */
export function templateUnchanged(object: MachineDeployment, revision: number): ObjectEvent<MachineDeployment> {
  const message = `The rollback revision ${revision} contains the same template as the current deployment.`;
  return event(object, 'Warning', 'DeploymentRollbackTemplateUnchanged', message);
}

function event(
  object: MachineDeployment,
  type: EventType,
  reason: string,
  message: string,
): ObjectEvent<MachineDeployment> {
  return { object, type, reason, message };
}
