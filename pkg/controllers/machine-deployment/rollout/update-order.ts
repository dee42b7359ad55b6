import { UPDATE_ORDER_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { updateOrderOf, type UpdateOrder } from '../../replicas/update-order-value.ts';
import { isAvailable } from '../../replicas/machine-state.ts';
import type { MachineDeploymentDeps } from '../step.ts';
import { isRolledOut } from './progressing-condition.ts';
import { canPause, hasOldMachines, isToBegin } from './rollout-begin.ts';
import { observeDeployment, type Observed } from '../observed.ts';
import { namedUpTo } from '../../../apis/short-text.ts';

export interface OrderHold {
  readonly message: string;
}

const MAX_NAMED = 5;

export interface UpdateState {
  /** Machines of another template are there, or wanted. */
  readonly hasOld: boolean;
  /** A Machine of the present template is available. */
  readonly hasUpdated: boolean;
}

export type OrderDeps = Pick<MachineDeploymentDeps, 'machineDeployments' | 'machineSets' | 'machines' | 'clock'>;

/** Whom a rollout waits for, as the caches show the other MachineDeployments of its namespace. */
export function orderHoldOf(deps: OrderDeps, observed: Observed): OrderHold | undefined {
  const { deployment } = observed;
  const hasBegun = !isToBegin(observed);
  if (hasBegun && !canPause(observed)) return undefined;
  const { namespace } = deployment.metadata;
  const others = deps.machineDeployments.list().filter((other) => other.metadata.namespace === namespace);
  const stateOf = (other: (typeof others)[number]) => {
    const its = observeDeployment(deps, other);
    const { newSet, machinesOf } = its;
    return { hasOld: hasOldMachines(its), hasUpdated: newSet !== undefined && machinesOf(newSet).some(isAvailable) };
  };
  return orderHold(deployment, others, stateOf, hasBegun);
}

/**
 * What a rollout of `deployment` waits for: that all of `others` that go first have been rolled out to their present template, or, with
 * `/first`, that one of those which still have to be updated has a Machine that is updated and available. One that needed no update
 * says nothing of the new template. Undefined when it may begin. `others` are the MachineDeployments of its namespace. One that is
 * being deleted is not waited for; one that is paused, frozen or does not get on is. A rollout that `hasBegun` waits for those only that
 * have Machines of another template: what merely lacks Machines is no rollout which it would have to let pass.
 */
export function orderHold(
  deployment: MachineDeployment,
  others: readonly MachineDeployment[],
  stateOf: (other: MachineDeployment) => UpdateState,
  hasBegun: boolean,
): OrderHold | undefined {
  const order = updateOrderOf(deployment);
  if (order === undefined) return undefined;
  const unfinished = others.filter((other) => goesBefore(other, order) && !isRolledOut(other));
  const open = hasBegun ? unfinished.filter((one) => stateOf(one).hasOld) : unfinished;
  const awaited = order.waitsForFirst ? firstAwaited(open.map((one) => ({ one, ...stateOf(one) }))) : open;
  if (awaited.length === 0) return undefined;
  const names = awaited.toSorted(byOrder).map((one) => `${one.metadata.name}${noteOn(one)}`);
  const what = order.waitsForFirst ? 'the first updated Machine of' : 'the rollout of';
  const now = hasBegun ? 'continue' : 'start';
  const message = `Waiting for ${what} MachineDeployment ${namedUpTo(MAX_NAMED, names)}, as annotation ${UPDATE_ORDER_ANNOTATION} requires. To ${now} now, change the annotation.`;
  return { message };
}

/** Those of which one has to have an updated Machine; none when one has. What only lacks Machines of its template is not updated. */
function firstAwaited(open: readonly ({ readonly one: MachineDeployment } & UpdateState)[]): MachineDeployment[] {
  const updating = open.filter(({ hasOld, hasUpdated }) => hasOld || !hasUpdated);
  return updating.some(({ hasUpdated }) => hasUpdated) ? [] : updating.map(({ one }) => one);
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

function noteOn({ spec, status }: MachineDeployment): string {
  if (spec.paused === true) return ' (paused)';
  const has = (type: string, want: string): boolean =>
    status?.conditions?.some((one) => one.type === type && one.status === want) === true;
  if (has('Frozen', 'True')) return ' (frozen)';
  return has('Progressing', 'False') ? ' (not progressing)' : '';
}
