import { Status } from '../rpc-error.ts';

import { NODE_GROUP_MAX_ANNOTATION, NODE_GROUP_MIN_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { describeFieldErrors, validateMachineDeployment } from '../../apis/machine/v1alpha1/validation.ts';
import type { NodeGroup } from '../groups.ts';

/** What one call comes to, given a group as it is: refused, or a size and the Machines that are to go for it. */
export type GroupDecision = Refusal | GroupChange;

/** Nothing is written; the message says what to do. */
export interface Refusal {
  readonly code: Status.INVALID_ARGUMENT | Status.FAILED_PRECONDITION;
  readonly message: string;
}

/** Written at once, or not at all. Nothing is, when the size is what it was and no Machine is named. */
export interface GroupChange {
  readonly replicas: number;
  /** Machines that join the list of those that are to go, by name. */
  readonly machines: readonly string[];
}

/** What a mutation has done to `spec.replicas`; equal when there was nothing to do. */
export interface Mutated {
  readonly before: number;
  readonly after: number;
  /** Machines that are to go, by name. */
  readonly machines: readonly string[];
}

export function isRefusal(decision: GroupDecision): decision is Refusal {
  return 'code' in decision;
}

/** The call makes no sense, whatever the group is like. */
export function invalidArgument(message: string): Refusal {
  return { code: Status.INVALID_ARGUMENT, message };
}

/** The group is not in the state for it. */
export function notNow(message: string): Refusal {
  return { code: Status.FAILED_PRECONDITION, message };
}

export function aboveMaximum({ id, max }: NodeGroup, before: number, wanted: number): Refusal {
  return notNow(
    `group ${id} has ${before} replicas and a maximum of ${max}, but ${wanted} were requested: request fewer, or raise the maximum ` +
      `(annotation ${NODE_GROUP_MAX_ANNOTATION}, or flag --nodes)`,
  );
}

export function belowMinimum({ id, min }: NodeGroup, before: number, wanted: number): Refusal {
  return notNow(
    `group ${id} has ${before} replicas and a minimum of ${min}, but ${wanted} would remain: request fewer, or lower the minimum ` +
      `(annotation ${NODE_GROUP_MIN_ANNOTATION}, or flag --nodes)`,
  );
}

/** Nothing would follow: a MachineDeployment that a looser schema has let in is not reconciled. Undefined when it is. */
export function refusedSpec({ id }: NodeGroup, deployment: MachineDeployment): Refusal | undefined {
  const errors = validateMachineDeployment(deployment);
  if (errors.length === 0) return undefined;
  return notNow(`group ${id} is not reconciled, because its spec is invalid: ${describeFieldErrors(errors)}`);
}

/** For a smaller size, a rollout would empty others. */
export function wouldCostOthers({ id }: NodeGroup, before: number): Refusal {
  return notNow(
    `a smaller size than ${before} of group ${id} would cost machines that have nodes: wait until the group has as many machines as its size, ` +
      'and its rollout is complete',
  );
}

/** A sentence for the audit: what was done, or that there was nothing to do. */
export function describeMutated({ before, after, machines }: Mutated): string {
  const size = before === after ? `size remains ${before}` : `size ${before} -> ${after}`;
  return machines.length === 0 ? size : `${size}, without ${machines.join(', ')}`;
}
