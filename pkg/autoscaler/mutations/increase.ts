import { replicasOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { NodeGroup } from '../groups.ts';
import { aboveMaximum, invalidArgument, notNow, type GroupDecision } from './decision.ts';
import type { GroupState } from './group-state.ts';

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
  return replicas > group.max ? aboveMaximum(group, before, replicas) : { replicas, machines: [] };
}
