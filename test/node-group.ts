import { TRIGGER_DELETION_ANNOTATION } from '../pkg/apis/machine/v1alpha1/labels.ts';
import type { NodeGroup } from '../pkg/autoscaler/groups.ts';
import { Membership } from '../pkg/autoscaler/membership.ts';
import { filledBy, type GroupState, type GroupMember } from '../pkg/autoscaler/mutations/group-state.ts';
import type { RolloutStage } from '../pkg/controllers/machine-deployment/rollout/rollout-stage.ts';
import { nodeAccess } from '../pkg/controllers/machine-facts/node-access.ts';
import { machine, machineDeployment, type BuiltMachine } from './builders.ts';
import type { ReplicasWorld } from './fakes/replicas-world.ts';

/** The node group of the MachineDeployment that is built here, of 1 to 5 Machines. */
export function nodeGroup(limits: Partial<NodeGroup> = {}): NodeGroup {
  return { id: 'deployment-1', namespace: 'default', name: 'deployment-1', min: 1, max: 5, ...limits };
}

/** One Machine of a group: it has a Node unless told otherwise. */
export interface MemberFacts {
  readonly name: string;
  readonly hasNode?: boolean;
  /** It has lost its Node. */
  readonly isLost?: boolean;
  readonly change?: (machine: BuiltMachine) => void;
}

/** A group of `replicas` with these Machines, at time 0 of FakeClock. */
export function groupState(
  replicas: number,
  members: readonly MemberFacts[],
  {
    list,
    rollout = 'none',
    owed = 0,
  }: { readonly list?: string; readonly rollout?: RolloutStage; readonly owed?: number } = {},
): GroupState {
  const deployment = machineDeployment(({ metadata, spec }) => {
    spec.replicas = replicas;
    if (list !== undefined) metadata.annotations[TRIGGER_DELETION_ANNOTATION] = list;
  });
  const entries = members.map(({ name, hasNode = true, isLost = false, change }): [string, GroupMember] => [
    name,
    {
      machine: machine((m) => {
        m.metadata.name = name;
        if (!hasNode) m.status.currentStatus.phase = 'Pending';
        if (isLost) m.status.currentStatus.phase = 'Unknown';
        change?.(m);
      }),
      hasNode,
      isLost,
    },
  ]);
  const known = new Map(entries);
  const nowMs = Date.parse('2026-01-01T00:00:00Z');
  return { deployment, members: known, ...filledBy(known, deployment, nowMs), rollout, owed, nowMs };
}

/** Whose a Node is, by what is in memory. */
export function membershipOf({ machines, machineSets, machineDeployments, nodes, targets }: ReplicasWorld): Membership {
  const [target] = targets.all();
  return new Membership({
    machines,
    machineSets,
    machineDeployments,
    nodes,
    nodesOf: (one) => (target === undefined ? [] : nodeAccess(target, machines).ofMachine(one)),
  });
}
