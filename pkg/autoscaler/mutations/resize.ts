import { replicasOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { fromTimestamp } from '../../base/clock/clock.ts';
import type { NodeGroup } from '../groups.ts';
import { invalidArgument, refusedSpec, notNow, type GroupDecision, aboveMaximum, wouldCostOthers } from './decision.ts';
import { withLess } from './delete-nodes.ts';
import { isKeptForInspection, neededBy, type GroupState, type GroupMember } from './group-state.ts';
import { isBeingDeleted } from '../../apis/meta.ts';

/** More Machines. All of them or none: the autoscaler counts on as many as it has asked for. */
export function decideIncrease(
  { deployment }: Pick<GroupState, 'deployment'>,
  group: NodeGroup,
  delta: number,
): GroupDecision {
  if (!Number.isInteger(delta) || delta <= 0) {
    return invalidArgument(
      `the delta is ${delta}: to increase group ${group.id}, it must be a whole number greater than 0`,
    );
  }
  if (isBeingDeleted(deployment)) return notNow(`group ${group.id} is being deleted: scale another group`);
  const before = replicasOf(deployment);
  const replicas = before + delta;
  if (replicas > group.max) return aboveMaximum(group, before, replicas);
  return refusedSpec(group, deployment) ?? { replicas, machines: [] };
}

/**
 * Takes back what was asked for and has not come: never a Machine with a Node, nor what a rollout owes, whatever the delta, because the
 * autoscaler takes back a whole request also when part of it has come. First go replicas without a Machine, then Machines that have failed, then others without a
 * Node, by name.
 */
export function decideDecrease(state: GroupState, group: NodeGroup, delta: number): GroupDecision {
  if (!Number.isInteger(delta) || delta >= 0) {
    return invalidArgument(
      `the delta is ${delta}: to decrease group ${group.id}, it must be a whole number less than 0`,
    );
  }
  const { filling } = state;
  const before = replicasOf(state.deployment);
  const needed = neededBy(state);
  const floor = Math.max(group.min, needed);
  const wanted = Math.min(-delta, before - floor);
  const missing = Math.min(wanted, state.missing);
  const machines = victimsOf(filling, state.nowMs).slice(0, Math.max(0, wanted - missing));
  if (missing + machines.length > 0) return withLess(state, group, machines, missing);
  if (state.owed > 0 && group.min < before && before <= needed) return wouldCostOthers(group, before);
  return notNow(
    `group ${group.id} has ${before} replicas, none of which can be removed: their nodes have joined, are preserved, or are within the minimum of ` +
      `${group.min}; specify the nodes to delete`,
  );
}

/** Machines without a Node, those that come up least likely first. */
function victimsOf(filling: readonly GroupMember[], nowMs: number): readonly string[] {
  return filling
    .filter(({ machine, hasNode }) => !hasNode && !isKeptForInspection(machine, nowMs))
    .map(({ machine: { metadata, status } }) => ({
      name: metadata.name,
      failed: status?.lastOperation?.type === 'Create' && status.lastOperation.state === 'Failed' ? 0 : 1,
      createdMs: fromTimestamp(metadata.creationTimestamp) ?? 0,
    }))
    .toSorted((a, b) => a.failed - b.failed || b.createdMs - a.createdMs || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
}
