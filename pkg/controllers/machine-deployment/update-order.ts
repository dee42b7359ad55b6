import { UPDATE_ORDER_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import { updateOrderOf, type UpdateOrder } from '../replicas/update-order-value.ts';
import { isRolledOut } from './progressing-condition.ts';

/** Whom a rollout waits for, as it is told to people. */
export interface OrderHold {
  readonly message: string;
}

/** So many MachineDeployments that go first are named. */
const MAX_NAMED = 5;

/**
 * What a rollout of `deployment` waits for: that all of `others` that go first have been rolled out to their present template, or, with
 * `/first`, that one of them has a Machine that is updated and available. Undefined when it may begin. `others` are the MachineDeployments
 * of its namespace. One that is being deleted is not waited for; one that is paused, frozen or does not get on is.
 */
export function orderHold(
  deployment: MachineDeployment,
  others: readonly MachineDeployment[],
  hasUpdatedMachine: (other: MachineDeployment) => boolean,
): OrderHold | undefined {
  const order = updateOrderOf(deployment);
  if (order === undefined) return undefined;
  const first = others.filter((other) => goesBefore(other, order));
  const open = first.filter((other) => !isRolledOut(other));
  if (open.length === 0 || (order.waitsForFirst && first.some(hasUpdatedMachine))) return undefined;
  const named = open
    .toSorted(byOrder)
    .slice(0, MAX_NAMED)
    .map((one) => `${one.metadata.name}${stateOf(one)}`);
  const more = open.length > MAX_NAMED ? ` and ${open.length - MAX_NAMED} more` : '';
  const what = order.waitsForFirst ? 'the first updated Machine of' : 'the rollout of';
  const message = `Waits for ${what} MachineDeployment ${named.join(', ')}${more}, by annotation ${UPDATE_ORDER_ANNOTATION}: change it to begin now.`;
  return { message };
}

/** Whether a rollout of `later` may wait for `earlier`. */
export function concerns(earlier: MachineDeployment, later: MachineDeployment): boolean {
  const order = updateOrderOf(later);
  return order !== undefined && goesBefore(earlier, order) && earlier.metadata.namespace === later.metadata.namespace;
}

function goesBefore(other: MachineDeployment, { group, index }: UpdateOrder): boolean {
  const its = updateOrderOf(other);
  return its !== undefined && its.group === group && its.index < index && !isBeingDeleted(other);
}

function byOrder(a: MachineDeployment, b: MachineDeployment): number {
  const left = updateOrderOf(a)?.index ?? 0;
  const right = updateOrderOf(b)?.index ?? 0;
  if (left !== right) return left - right;
  return a.metadata.name < b.metadata.name ? -1 : 1;
}

function stateOf({ spec, status }: MachineDeployment): string {
  if (spec.paused === true) return ' (paused)';
  const has = (type: string, want: string): boolean =>
    status?.conditions?.some((one) => one.type === type && one.status === want) === true;
  if (has('Frozen', 'True')) return ' (frozen)';
  return has('Progressing', 'False') ? ' (does not progress)' : '';
}
