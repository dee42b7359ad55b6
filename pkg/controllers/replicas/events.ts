import { UNFREEZE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { KubeObject } from '../../apis/meta.ts';
import { messageOf } from '../../driver/errno.ts';
import type { EventType } from '../../kube/events/correlator.ts';
import { conditionOf } from '../../work/reconcile/conditions.ts';
import { INVALID_ANNOTATION, invalidAnnotations, type AnnotatedKind } from './invalid-annotations.ts';

export interface ObjectEvent<T extends KubeObject> {
  readonly object: T;
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
}

/** Reason of an Event, and of condition ReplicaFailure: a change of another object was rejected. */
export const CHANGE_REFUSED = 'ChangeRefused';

/** Source component of these Events, as in the original. */
export const MACHINE_SET_EVENT_SOURCE = 'machineset-controller';

export function createdMachine(object: MachineSet, name: string): ObjectEvent<MachineSet> {
  return { object, type: 'Normal', reason: 'SuccessfulCreate', message: `Created Machine: ${name}` };
}

export function failedToCreate(object: MachineSet, err: unknown): ObjectEvent<MachineSet> {
  return { object, type: 'Warning', reason: 'FailedCreate', message: `Error creating: ${messageOf(err)}` };
}

export function deletedMachine(object: MachineSet, name: string): ObjectEvent<MachineSet> {
  return { object, type: 'Normal', reason: 'SuccessfulDelete', message: `Deleted machine: ${name}` };
}

export function failedToDelete(object: MachineSet, name: string, err: unknown): ObjectEvent<MachineSet> {
  return {
    object,
    type: 'Warning',
    reason: 'FailedDelete',
    message: `Error deleting Machine ${name}: ${messageOf(err)}`,
  };
}

export function invalidSpec<T extends KubeObject>(object: T, message: string): ObjectEvent<T> {
  return { object, type: 'Warning', reason: 'InvalidSpec', message };
}

export function changeRefused<T extends KubeObject>(object: T, message: string): ObjectEvent<T> {
  return { object, type: 'Warning', reason: CHANGE_REFUSED, message };
}

/** Annotations that mean nothing, if the conditions that it had before its status was written do not tell of them. */
export function invalidAnnotation<T extends KubeObject>(
  object: T,
  kind: AnnotatedKind,
  before: readonly { readonly type: string; readonly message?: string }[] = [],
): ObjectEvent<T> | undefined {
  const message = invalidAnnotations(kind, object);
  const told = conditionOf(before, INVALID_ANNOTATION)?.message;
  if (message === undefined || message === told) return undefined;
  return { object, type: 'Warning', reason: INVALID_ANNOTATION, message };
}

/** It created more within a minute than anybody can want, and is frozen. Without numbers: equal ones are counted as one. */
export function reachedCreationLimit<T extends KubeObject>(object: T): ObjectEvent<T> {
  const message =
    `Too many objects were created within a minute: no more are created until annotation ${UNFREEZE_ANNOTATION} is set. ` +
    'For the numbers, see condition Frozen. First find out why the created objects did not persist, for example because of a webhook that changes labels';
  return { object, type: 'Warning', reason: 'CreationLimitReached', message };
}
