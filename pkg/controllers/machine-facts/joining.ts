import { phaseOf, providerIDOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import { isBeingSetUp } from './node-health.ts';
import { failedCallOf } from './original-texts.ts';
import type { OperationUpdate } from './status.ts';

/** Whether the machine has not been Running yet: it joins when it becomes so. */
export function hasToJoin({ status }: Pick<Machine, 'status'>): boolean {
  const { type, state } = status?.lastOperation ?? {};
  return type === 'Create' && state !== 'Successful';
}

/** Whether the machine has been Running, and is not about to join again. */
export function hasRun(machine: Pick<Machine, 'status'>): boolean {
  return phaseOf(machine) !== 'Pending' && !hasToJoin(machine);
}

/**
 * Whether the machine is Running once its Node is healthy, whatever it has failed at. One that has to join needs a VM that its driver has initialized,
 * if it has that step, and a Node on which pods are scheduled, and which stays: else a rollout would drain Nodes that work for those that do not.
 */
export function runsOnceHealthy(machine: Pick<Machine, 'status'>, node: Node): boolean {
  if (hasRun(machine)) return true;
  return !isUninitialized(machine) && !isBeingSetUp(node) && !isBeingDeleted(node);
}

/** Whether the machine has a VM that its driver has not initialized, by its last operation: a code says so also while that tells of something else. */
export function isUninitialized({ status }: Pick<Machine, 'status'>): boolean {
  const { lastOperation } = status ?? {};
  return lastOperation?.errorCode === 'VMBeingInitialized' || failedCallOf(lastOperation) === 'initialize';
}

/**
 * Whether the API server refuses to record the VM of a machine in creation, by its last operation. Where that VM is to be initialized, the code
 * says that: nothing but the record is before it, so nothing else fails.
 */
export function isVMRefused(machine: Pick<Machine, 'spec' | 'status'>): boolean {
  const { type, state, errorCode } = machine.status?.lastOperation ?? {};
  if (type !== 'Create') return false;
  if (errorCode === 'RecordRefused') return true;
  const isToBeInitialized = errorCode === 'VMBeingInitialized' && state === 'Failed' && providerIDOf(machine) === '';
  // One that was given up keeps the code, whatever it was given up for.
  return isToBeInitialized && phaseOf(machine) === 'CrashLoopBackOff';
}

/**
 * What a creation has failed at, as its machine tells of it. While its VM is not initialized the code says only that, whatever failed since: by
 * another one it would run as soon as its Node is healthy, and nothing would initialize the VM any more.
 */
export function failureOfCreation(machine: Pick<Machine, 'spec' | 'status'>, told: OperationUpdate): OperationUpdate {
  // One that is not recorded has no Node that it could run with; the next attempt says it anew.
  return isUninitialized(machine) && providerIDOf(machine) !== '' ? { ...told, errorCode: 'VMBeingInitialized' } : told;
}
