import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { KubeObject } from '../../apis/meta.ts';
import { messageOf } from '../../driver/errno.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { reasonFor } from '../machine-facts/node-refusal.ts';
import type { ObjectEvent } from '../replicas/events.ts';
import type { RefusedChange } from '../replicas/refusals.ts';

/** Source component of these Events, as in the original. */
export const MACHINE_DEPLOYMENT_EVENT_SOURCE = 'machine-controller-manager';

export function scaledSet(
  object: MachineDeployment,
  set: string,
  from: number,
  to: number,
): ObjectEvent<MachineDeployment> {
  const direction = to > from ? 'up' : 'down';
  const message = `Scaled ${direction} machine set ${set} to ${to}`;
  return { object, type: 'Normal', reason: 'ScalingMachineSet', message };
}

export function failedToCreateSet(
  object: MachineDeployment,
  set: string,
  err: unknown,
): ObjectEvent<MachineDeployment> {
  const message = `Failed to create new machine set "${set}": ${messageOf(err)}`;
  return { object, type: 'Warning', reason: 'MachineSetCreateError', message };
}

/** An empty selector would claim every set of the namespace. */
export function selectsAll(object: MachineDeployment): ObjectEvent<MachineDeployment> {
  const message = 'This deployment is selecting all machines. A non-empty selector is required.';
  return { object, type: 'Warning', reason: 'SelectingAll', message };
}

interface Release {
  readonly deployment: MachineDeployment;
  readonly set: MachineSet;
  readonly machines: number;
}

/** A set that still has Machines was let go, because the selector no longer selects it; told of both. */
export function releasedMachines<T extends KubeObject>(
  object: T,
  { deployment, set, machines }: Release,
): ObjectEvent<T> {
  const message =
    `The selector of machine deployment ${deployment.metadata.name} no longer matches machine set ${set.metadata.name}, which was ` +
    `released with ${machines} machine(s): no machine deployment manages them now, and they and their VMs are not deleted with ` +
    'it. Delete the set, or add the labels of the selector to it.';
  return { object, type: 'Warning', reason: 'ReleasedMachineSet', message };
}

const MAX_ANSWERS = 3;

/** Nodes that refused what a rollout puts on them, told once for each: what was answered, with the name of a Node for each answer. */
export function couldNotMarkNodes(
  object: MachineDeployment,
  nodes: readonly RefusedChange[],
): ObjectEvent<MachineDeployment> {
  const message = `Could not update ${nodes.length} node(s) for the rollout: ${answersOf(nodes)}. ${RETRIED}`;
  return { object, type: 'Warning', reason: 'NodeUpdateFailed', message };
}

/** The same of Machines that an update in place moves. */
export function couldNotMoveMachines(
  object: MachineDeployment,
  machines: readonly RefusedChange[],
): ObjectEvent<MachineDeployment> {
  const message = `Could not update ${machines.length} machine(s) for the rollout: ${answersOf(machines)}. ${RETRIED}`;
  return { object, type: 'Warning', reason: 'MachineUpdateFailed', message };
}

const RETRIED = 'The rollout continues and the update is retried';

function answersOf(refused: readonly RefusedChange[]): string {
  const byAnswer = Map.groupBy(refused, ({ name, cause }) =>
    cause instanceof ApiError ? reasonFor(cause, name) : messageOf(cause),
  );
  const answers = [...byAnswer].map(([answer, those]) => `${someOf(those)}: ${answer}`).toSorted();
  const others = answers.length > MAX_ANSWERS ? `; and ${answers.length - MAX_ANSWERS} other answers` : '';
  return `${answers.slice(0, MAX_ANSWERS).join('; ')}${others}`;
}

function someOf(refused: readonly RefusedChange[]): string {
  const [first = ''] = refused.map(({ name }) => name).toSorted();
  return refused.length === 1 ? first : `${first} and ${refused.length - 1} more`;
}

export function rolledBack(object: MachineDeployment, revision: number): ObjectEvent<MachineDeployment> {
  const message = `Rolled back deployment "${object.metadata.name}" to revision ${revision}`;
  return { object, type: 'Normal', reason: 'DeploymentRollback', message };
}

export function revisionNotFound(object: MachineDeployment, revision: number): ObjectEvent<MachineDeployment> {
  const message = revision === 0 ? 'Unable to find last revision.' : 'Unable to find the revision to rollback to.';
  return { object, type: 'Warning', reason: 'DeploymentRollbackRevisionNotFound', message };
}

export function templateUnchanged(object: MachineDeployment): ObjectEvent<MachineDeployment> {
  const message = `The rollback revision contains the same template as current deployment "${object.metadata.name}"`;
  return { object, type: 'Warning', reason: 'DeploymentRollbackTemplateUnchanged', message };
}
