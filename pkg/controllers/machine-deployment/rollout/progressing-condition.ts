import type {
  MachineDeployment,
  MachineDeploymentCondition,
  MachineDeploymentStatus,
} from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import { progressDeadlineMsOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { messageOf } from '../../../driver/errno.ts';
import { conditionOf } from '../../../work/reconcile/conditions.ts';

/** What of condition `Progressing` is decided anew in a pass; cluster-autoscalers read these very reasons. */
export type ProgressingUpdate = Pick<MachineDeploymentCondition, 'status' | 'reason' | 'message'> & {
  /** Shows a new lastUpdateTime even if nothing else changed: the deadline counts from it. */
  readonly refresh: boolean;
};

/** A rollout is on: the set of the new template exists. */
const NEW_SET_CREATED = 'NewMachineSetCreated';
const FOUND_NEW_SET = 'FoundNewMachineSet';
const NEW_SET_AVAILABLE = 'NewMachineSetAvailable';
const SET_UPDATED = 'MachineSetUpdated';
const DEADLINE_EXCEEDED = 'ProgressDeadlineExceeded';
const SET_CREATE_ERROR = 'MachineSetCreateError';
const PAUSED = 'DeploymentPaused';
const WAITING_FOR_ORDER = 'WaitingForUpdateOrder';
const ORDER_REACHED = 'UpdateOrderReached';
const WAITING_FOR_MAINTENANCE = 'WaitingForMaintenance';
const MAINTENANCE_ENDED = 'MaintenanceEnded';
const RESUMED = 'DeploymentResumed';

/** A rollout that others hold up is not judged by its deadline, nor is one that is complete. */
const NOT_JUDGED: ReadonlySet<string | undefined> = new Set([
  NEW_SET_AVAILABLE,
  WAITING_FOR_ORDER,
  WAITING_FOR_MAINTENANCE,
]);

/** Grace on top of the remaining time, so that the deadline is surely past when it is looked at. */
const DEADLINE_SLACK_MS = 1_000;

function progressingOf(deployment: MachineDeployment): MachineDeploymentCondition | undefined {
  return conditionOf(deployment.status?.conditions, 'Progressing');
}

/** Every desired Machine is of the new template and available, and no other exists. */
export function isComplete({ metadata, spec }: MachineDeployment, status: MachineDeploymentStatus): boolean {
  const replicas = spec.replicas ?? 0;
  return (
    (status.updatedReplicas ?? 0) === replicas &&
    (status.replicas ?? 0) === replicas &&
    (status.availableReplicas ?? 0) === replicas &&
    isObserved(metadata, status)
  );
}

/**
 * Every Machine is of the present template, and once all were available: scaling and failures of later days do not make it a rollout
 * again.
 */
export function isRolledOut(deployment: MachineDeployment): boolean {
  const { metadata, status = {} } = deployment;
  if (isComplete(deployment, status)) return true;
  // Between the old machines of a Recreate and the new ones there are none: that is no end.
  const { replicas = 0, updatedReplicas = 0 } = status;
  const isUpdated = updatedReplicas > 0 && replicas === updatedReplicas;
  return isObserved(metadata, status) && isUpdated && progressingOf(deployment)?.reason === NEW_SET_AVAILABLE;
}

/** What is said of a rollout that waits for others, and when it may go on. */
export function orderProgress(deployment: MachineDeployment, hold: string | undefined): ProgressingUpdate | undefined {
  return holdProgress(deployment, hold, WAITING_FOR_ORDER, ORDER_REACHED);
}

/** The deadline of a rollout whose turn came while its rollback was refused counts from when that is accepted. Undefined of any other. */
export function rolledBackProgress(deployment: MachineDeployment): ProgressingUpdate | undefined {
  const current = progressingOf(deployment);
  if (current?.reason !== ORDER_REACHED) return undefined;
  return { status: 'Unknown', reason: ORDER_REACHED, message: 'Rollout continues', refresh: true };
}

/** What is said of a rollout that stands still because of machines in maintenance, and when they hold it up no more. */
export function maintenanceProgress(
  deployment: MachineDeployment,
  next: MachineDeploymentStatus,
  hold: string | undefined,
): ProgressingUpdate | undefined {
  if (wasRolledOut(deployment, next)) return undefined;
  return holdProgress(deployment, hold, WAITING_FOR_MAINTENANCE, MAINTENANCE_ENDED);
}

/** The deadline of a rollout counts from the end of a hold. Undefined when there is nothing to say. */
function holdProgress(
  deployment: MachineDeployment,
  hold: string | undefined,
  waiting: string,
  ended: string,
): ProgressingUpdate | undefined {
  const current = progressingOf(deployment);
  if (hold !== undefined) {
    return { status: 'Unknown', reason: waiting, message: hold, refresh: current?.message !== hold };
  }
  if (current?.reason !== waiting) return undefined;
  return { status: 'Unknown', reason: ended, message: 'Rollout continues', refresh: false };
}

/** Once a rollout was complete, scaling and failures do not make it one again. */
function wasRolledOut(deployment: MachineDeployment, next: MachineDeploymentStatus): boolean {
  return (
    progressingOf(deployment)?.reason === NEW_SET_AVAILABLE && (next.replicas ?? 0) === (next.updatedReplicas ?? 0)
  );
}

/**
 * What a rollout says of its progress, given the status that is about to be written and the name of the new set; undefined leaves
 * the condition alone.
 * Once a rollout was complete, scaling does not make it one again.
 */
export function rolloutProgressOf(
  deployment: MachineDeployment,
  next: MachineDeploymentStatus,
  newSet: string | undefined,
  nowMs: number,
): ProgressingUpdate | undefined {
  // Between the old machines of a Recreate and the new ones, of which a freeze makes no set, there are none: that is no end.
  const isBetween = newSet === undefined && (deployment.spec.replicas ?? 0) > 0;
  if (!isBetween && wasRolledOut(deployment, next)) return undefined;

  const what = newSet === undefined ? `Machine Deployment "${deployment.metadata.name}"` : `MachineSet "${newSet}"`;
  if (isComplete(deployment, next)) {
    const message = `${what} has successfully progressed.`;
    return { status: 'True', reason: NEW_SET_AVAILABLE, message, refresh: false };
  }
  if (hasProgressed(deployment.status ?? {}, next)) {
    const message = `${what} is progressing.`;
    return { status: 'True', reason: SET_UPDATED, message, refresh: true };
  }
  if (isTimedOut(deployment, nowMs)) {
    const message = `${what} has timed out progressing.`;
    return { status: 'False', reason: DEADLINE_EXCEEDED, message, refresh: false };
  }
  return undefined;
}

/**
 * What is said of a rollout that has just begun, or of a set that was found without having been told of: also when the pass
 * that created the set could not tell.
 */
export function initialProgressOf(
  deployment: MachineDeployment,
  counts: MachineDeploymentStatus,
  newSet: string,
): ProgressingUpdate | undefined {
  const current = progressingOf(deployment);
  if (current === undefined) return found(newSet);
  const isNewRollout = current.reason === NEW_SET_AVAILABLE && (counts.replicas ?? 0) !== (counts.updatedReplicas ?? 0);
  return isNewRollout || current.reason === SET_CREATE_ERROR ? created(newSet) : undefined;
}

export function created(newSet: string): ProgressingUpdate {
  const message = `Created new machine set "${newSet}"`;
  return { status: 'True', reason: NEW_SET_CREATED, message, refresh: false };
}

export function creationFailed(newSet: string, err: unknown): ProgressingUpdate {
  const message = `Failed to create new machine set "${newSet}": ${messageOf(err)}`;
  return { status: 'False', reason: SET_CREATE_ERROR, message, refresh: false };
}

/** The message of an update that says that the new set could not be created; undefined of any other. */
export function creationFailureOf(update: ProgressingUpdate | undefined): string | undefined {
  return update?.reason === SET_CREATE_ERROR ? update.message : undefined;
}

function found(newSet: string): ProgressingUpdate {
  const message = `Found new machine set "${newSet}"`;
  return { status: 'True', reason: FOUND_NEW_SET, message, refresh: false };
}

/** After which time to look whether an unfinished rollout has missed its deadline; undefined when it has none. */
export function deadlineCheckMs(deployment: MachineDeployment, nowMs: number): number | undefined {
  const deadlineMs = deadlineOf(deployment);
  if (deadlineMs === undefined || isComplete(deployment, deployment.status ?? {}) || isTimedOut(deployment, nowMs))
    return undefined;
  return Math.max(0, deadlineMs - nowMs) + DEADLINE_SLACK_MS;
}

function isObserved({ generation = 0 }: MachineDeployment['metadata'], status: MachineDeploymentStatus): boolean {
  return (status.observedGeneration ?? 0) >= generation;
}

function hasProgressed(before: MachineDeploymentStatus, next: MachineDeploymentStatus): boolean {
  const [updated, updatedBefore] = [next.updatedReplicas ?? 0, before.updatedReplicas ?? 0];
  const [old, oldBefore] = [(next.replicas ?? 0) - updated, (before.replicas ?? 0) - updatedBefore];
  return (
    updated > updatedBefore ||
    old < oldBefore ||
    (next.readyReplicas ?? 0) > (before.readyReplicas ?? 0) ||
    (next.availableReplicas ?? 0) > (before.availableReplicas ?? 0)
  );
}

function isTimedOut(deployment: MachineDeployment, nowMs: number): boolean {
  if (progressingOf(deployment)?.reason === DEADLINE_EXCEEDED) return true;
  const deadlineMs = deadlineOf(deployment);
  return deadlineMs !== undefined && deadlineMs < nowMs;
}

/** When the rollout should have made its next step; undefined without a deadline or a rollout. */
function deadlineOf(deployment: MachineDeployment): number | undefined {
  const deadlineMs = progressDeadlineMsOf(deployment);
  const current = progressingOf(deployment);
  const sinceMs = fromTimestamp(current?.lastUpdateTime);
  if (deadlineMs === undefined || sinceMs === undefined || NOT_JUDGED.has(current?.reason)) return undefined;
  return sinceMs + deadlineMs;
}

/** What pausing and resuming say; undefined when it is said already, or a missed deadline must stay visible. */
export function pauseProgress(deployment: MachineDeployment): ProgressingUpdate | undefined {
  const current = progressingOf(deployment);
  if (current?.reason === DEADLINE_EXCEEDED) return undefined;
  const isNoted = current?.reason === PAUSED;
  if (deployment.spec.paused === true && !isNoted) {
    return { status: 'Unknown', reason: PAUSED, message: 'Deployment is paused', refresh: false };
  }
  if (deployment.spec.paused !== true && isNoted) {
    return { status: 'Unknown', reason: RESUMED, message: 'Deployment is resumed', refresh: false };
  }
  return undefined;
}
