import { replicasOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { namesListed } from '../../controllers/machine-deployment/scaler-handoff.ts';
import { isTerminating } from '../../controllers/replicas/machine-state.ts';
import type { NodeGroup } from '../groups.ts';
import { belowMinimum, invalid, notNow, type Decision, type Refusal } from './decision.ts';
import { failedFor, isKept, isReplaced, missingIn, type GroupState } from './group-state.ts';

/** What a node that the autoscaler wants gone stands for; `node` is what the autoscaler calls it. */
export type Asked = { readonly node: string } & (
  | { readonly kind: 'machine'; readonly machine: string; readonly isPlaceholder: boolean }
  /** A replica without a Machine: the `index`-th that the group lacks. */
  | { readonly kind: 'missing'; readonly index: number }
  /** Of another group, or of a Machine without one. */
  | { readonly kind: 'foreign' }
  /** It has neither id nor name. */
  | { readonly kind: 'nameless' }
  /** A Node that no Machine has become. */
  | { readonly kind: 'unmanaged' }
  /** There is neither such a Machine nor such a Node: what was asked for is done. */
  | { readonly kind: 'gone' }
);

/**
 * Which Machines go, and what size is left: all that is asked for, or nothing.
 *
 * | a node that stands for                                         | then |
 * |---|---|
 * | a Machine that is gone, on its way out, or listed already      | done: after an error the autoscaler would use its Node again |
 * | a Machine that has failed, or is preserved                     | done: its set replaces it, or somebody looks at it |
 * | a Machine without Node, for which one has joined meanwhile     | FAILED_PRECONDITION: the autoscaler's list was old, the Machine is well |
 * | a Machine with a Node, while a rollout has still to choose     | FAILED_PRECONDITION: the rollout is about to replace it, or others for it |
 * | a replica whose Machine comes when those before it are gone    | FAILED_PRECONDITION: a rollout of type Recreate would end with fewer |
 * | a replica without a Machine, or with one that has failed       | taken back, with those that the group lacks beyond it |
 * | a Machine of another group, a Node of no Machine, or nothing   | INVALID_ARGUMENT |
 *
 * A repetition finds nothing to do, also when it comes in parts or in another order.
 */
export function decideDeletion(state: GroupState, group: NodeGroup, asked: readonly Asked[]): Decision {
  const refusals = asked.map((one) => refusalOf(one, state, group)).filter((refusal) => refusal !== undefined);
  const [refusal] = refusals.toSorted((a, b) => a.code - b.code); // what makes no sense at all comes first
  if (refusal !== undefined) return refusal;

  const machines = [...new Set(asked.flatMap((one) => (one.kind === 'machine' ? [one.machine] : [])))].filter((name) =>
    isToGo(name, state),
  );
  return withLess(state, group, machines, takenBack(state, asked));
}

/** The group without these Machines, and by up to `missing` replicas smaller that have none. */
export function withLess(state: GroupState, group: NodeGroup, machines: readonly string[], missing: number): Decision {
  const before = replicasOf(state.deployment);
  const left = before - machines.length;
  if (machines.length > 0 && left < group.min) return belowMinimum(group, before, left);
  // One is like another: the minimum leaves as many as it can.
  const fewer = Math.max(0, Math.min(missing, left - group.min));
  if (missing > 0 && fewer === 0) return belowMinimum(group, before, left - missing);
  return { replicas: left - fewer, machines: [...machines, ...failedFor(state, fewer)] };
}

function refusalOf(asked: Asked, state: GroupState, group: NodeGroup): Refusal | undefined {
  const { kind, node } = asked;
  if (kind === 'nameless') return invalid('a node has neither an id nor a name: give its providerID');
  if (kind === 'foreign') return invalid(`node ${node} is not of group ${group.id}: ask for it in its own group`);
  if (kind === 'unmanaged') return invalid(`node ${node} is of no machine: delete it by hand, or leave it alone`);
  if (kind === 'missing' && asked.index < missingIn(state) && isMakingRoom(state)) {
    return notNow(
      `a rollout of group ${group.id} is on, which makes its machines when those before them are gone: wait until it is complete`,
    );
  }
  if (kind !== 'machine' || !isToGo(asked.machine, state)) return undefined;
  const { hasNode = false } = state.members.get(asked.machine) ?? {};
  if (asked.isPlaceholder && hasNode) {
    return notNow(
      `the node of machine ${asked.machine} has joined meanwhile: list the nodes of group ${group.id} again`,
    );
  }
  if (!asked.isPlaceholder && state.rollout === 'choosing') {
    return notNow(
      `a rollout of group ${group.id} is on, which replaces its nodes: wait until it has deleted the last of the old ones`,
    );
  }
  return undefined;
}

/** Machines of a rollout are on their way out, and others are to come for them: how long that takes is up to their drains. */
function isMakingRoom({ rollout, members }: GroupState): boolean {
  return rollout !== 'none' && [...members.values()].some(({ machine }) => isTerminating(machine));
}

/** Neither gone, nor on its way out, nor kept, nor about to be replaced. */
function isToGo(name: string, { deployment, members, nowMs }: GroupState): boolean {
  const { machine } = members.get(name) ?? {};
  if (machine === undefined || isTerminating(machine) || namesListed(deployment).has(name)) return false;
  return !isKept(machine, nowMs) && !isReplaced(machine, nowMs);
}

/**
 * How many replicas without a Machine go. They have no names that last: that the first of those asked for is not lacking any more is
 * the same anyone who asks, how often, and in which order.
 */
function takenBack(state: GroupState, asked: readonly Asked[]): number {
  const lowest = Math.min(...asked.flatMap((one) => (one.kind === 'missing' ? [one.index] : [])));
  return Math.max(0, missingIn(state) - lowest);
}
