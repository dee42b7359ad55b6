import { replicasOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { namesListed } from '../../controllers/machine-deployment/scaling/scaler-handoff.ts';
import { isTerminating } from '../../controllers/replicas/machine-state.ts';
import { isPreserved } from '../../controllers/machine-facts/preserved.ts';
import type { NodeGroup } from '../groups.ts';
import {
  belowMinimum,
  invalidArgument,
  refusedSpec,
  isRefusal,
  notNow,
  wouldCostOthers,
  type GroupChange,
  type GroupDecision,
  type Refusal,
} from './decision.ts';
import { isKeptForInspection, isReplacedBySet, neededBy, type GroupState } from './group-state.ts';
import { PRESERVE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { Membership, NodeIdentifier } from '../membership.ts';
import { parsePlaceholder } from '../placeholder.ts';

/**
 * What a node that the autoscaler wants gone stands for; `node` is what the autoscaler calls it, and of a Machine that `isUnregistered` it
 * sees no Node.
 */
export type DeletionTarget = { readonly node: string } & (
  | { readonly kind: 'machine'; readonly machine: string; readonly isUnregistered: boolean }
  /** A replica without a Machine, by the name of its place. */
  | { readonly kind: 'missing'; readonly place: string }
  /** Of another group, or of a Machine without one. */
  | { readonly kind: 'foreign' }
  /** It has neither id nor name. */
  | { readonly kind: 'nameless' }
  /** A Node that was another Machine's when the autoscaler looked at it. */
  | { readonly kind: 'another' }
  /** A Node that no Machine has become. */
  | { readonly kind: 'unmanaged' }
  /** There is neither such a Machine, nor such a Node or place: what was asked for is done. */
  | { readonly kind: 'gone' }
);

/** What the autoscaler makes up for an instance of which it sees no Node has this annotation. */
const FAKE_NODE_ANNOTATION = 'k8s.io/cluster-autoscaler/fake-node-reason';

export interface Deletion extends GroupChange {
  /** The places that are taken back. */
  readonly places: readonly string[];
}

/** What deleting these nodes comes to; `places` are those of the replicas without a Machine. */
export function deletionOf(
  membership: Membership,
  state: GroupState,
  group: NodeGroup,
  nodes: readonly NodeIdentifier[],
  places: readonly string[],
): Refusal | Deletion {
  const asked = nodes.map((node) => deletionTargetOf(membership, state.deployment, node, places));
  return decideDeletion(state, group, asked);
}

/**
 * Which Machines go, and what size is left: all that is asked for, or nothing; of replicas without a Machine as many as are not needed, and
 * of Machines that have lost their Nodes none.
 *
 * | a node that stands for                                         | then |
 * |---|---|
 * | a Machine that is gone, on its way out, or listed already      | done: after an error the autoscaler would use its Node again |
 * | a Machine that has failed, or is preserved without a Node      | done: its set replaces it, or somebody looks at it |
 * | a Machine that is preserved, and has a Node                    | FAILED_PRECONDITION: the autoscaler takes its taint from a Node only after an error |
 * | a Machine that has lost its Node                               | left: its health timeout decides. FAILED_PRECONDITION when nothing else is asked for |
 * | a Machine without Node as the autoscaler sees it, that has one | FAILED_PRECONDITION: its list was old, or it watches another cluster; the Machine is well |
 * | an earlier Machine, whose Node's name or VM another one has    | FAILED_PRECONDITION: the other one is not meant, and may have its Node, with a taint |
 * | a Machine with a Node, while a rollout has still to choose     | FAILED_PRECONDITION: the rollout is about to replace it, or others for it |
 * | one without Node, or no Machine, in place of which one with a Node would go | FAILED_PRECONDITION: a rollout makes it beyond the size, or for one that it has removed |
 * | a replica whose Machine comes when those before it are gone    | FAILED_PRECONDITION: a rollout of type Recreate would end with fewer |
 * | a replica without a Machine, or with one that has failed       | taken back |
 * | one that has its Machine by now, or was taken back             | done: another one takes its place in the list, not in the call |
 * | a Machine of a group whose spec is invalid                     | FAILED_PRECONDITION: it is not reconciled |
 * | a Machine of another group, a Node of no Machine, or nothing   | INVALID_ARGUMENT |
 *
 * A repetition finds nothing to do, also when it comes in parts or in another order.
 */
export function decideDeletion(
  state: GroupState,
  group: NodeGroup,
  named: readonly DeletionTarget[],
): Refusal | Deletion {
  // The autoscaler names all that have no Node in one call, and names those that are left again.
  const asked = named.filter((one) => !isLost(one, state));
  if (asked.length === 0 && named.length > 0) return notNow(describeLost(namesOf(named)));

  const refusals = asked.map((one) => refusalOf(one, state, group)).filter((refusal) => refusal !== undefined);
  // What makes no sense at all comes first. Of several the same is told in whatever order they are named: each text is an Event of its own.
  const [refusal] = refusals.toSorted((a, b) => a.code - b.code || (a.message < b.message ? -1 : 1));
  if (refusal !== undefined) return refusal;

  const machines = namesOf(asked).filter((name) => isToGo(name, state));
  const places = [...new Set(asked.flatMap((one) => (one.kind === 'missing' ? [one.place] : [])))];
  const spare = replicasOf(state.deployment) - machines.length - neededBy(state, machines);
  const wanted = Math.min(places.length, state.missing);
  if (wanted > 0 && spare <= 0) return wouldCostOthers(group, replicasOf(state.deployment));
  const decision = withLess(state, group, machines, Math.min(wanted, spare));
  if (isRefusal(decision)) return decision;
  const fewer = replicasOf(state.deployment) - machines.length - decision.replicas;
  const isWithdrawal = fewer > 0 || machines.some((name) => state.members.get(name)?.hasNode === false);
  if (isWithdrawal && decision.replicas < neededBy(state, machines))
    return wouldCostOthers(group, replicasOf(state.deployment));
  const invalid = machines.length === 0 ? undefined : refusedSpec(group, state.deployment);
  return invalid ?? { ...decision, places: places.slice(0, fewer) };
}

/** The group without these Machines, and by up to `missing` replicas smaller that have none. */
export function withLess(
  state: GroupState,
  group: NodeGroup,
  machines: readonly string[],
  missing: number,
): GroupDecision {
  const before = replicasOf(state.deployment);
  const left = before - machines.length;
  if (machines.length > 0 && left < group.min) return belowMinimum(group, before, left);
  // One is like another: the minimum leaves as many as it can.
  const fewer = Math.max(0, Math.min(missing, left - group.min));
  if (missing > 0 && fewer === 0) return belowMinimum(group, before, left - missing);
  return { replicas: left - fewer, machines: [...machines, ...failedFor(state, fewer)] };
}

/**
 * The Machines to name when that many missing replicas are taken back: those that have failed, as far as replicas without any Machine are
 * not enough. Unnamed they would go all the same, and another Machine might go for the size.
 */
function failedFor(state: GroupState, missing: number): readonly string[] {
  const listed = namesListed(state.deployment);
  const failed = [...state.members.values()]
    .filter(({ machine }) => isReplacedBySet(machine, state.nowMs) && !listed.has(machine.metadata.name))
    .map(({ machine }) => machine.metadata.name)
    .toSorted();
  const without = Math.max(0, state.missing - failed.length);
  return failed.slice(0, Math.max(0, missing - without));
}

function refusalOf(asked: DeletionTarget, state: GroupState, group: NodeGroup): Refusal | undefined {
  const { kind, node } = asked;
  if (kind === 'nameless') return invalidArgument('a node has neither an ID nor a name: set its providerID');
  if (kind === 'foreign')
    return invalidArgument(`node ${node} is not in group ${group.id}: delete it through its own group`);
  if (kind === 'unmanaged')
    return invalidArgument(`node ${node} does not belong to a machine: delete it manually, or keep it`);
  if (kind === 'another')
    return notNow(`node ${node} belongs to another machine by now: list the nodes of group ${group.id} again`);
  if (kind === 'missing' && state.missing > 0 && isMakingRoom(state)) {
    return notNow(
      `a rollout of group ${group.id} is in progress, which creates machines only after old ones are gone: wait until it is complete`,
    );
  }
  if (kind !== 'machine') return undefined;
  if (!asked.isUnregistered && staysPreserved(asked.machine, state)) {
    return notNow(
      `machine ${asked.machine} is preserved: to delete it, end its preservation (annotation ${PRESERVE_ANNOTATION})`,
    );
  }
  if (!isToGo(asked.machine, state)) return undefined;
  const { hasNode = false } = state.members.get(asked.machine) ?? {};
  if (asked.isUnregistered && hasNode) {
    return notNow(
      parsePlaceholder(node) === undefined
        ? // No word of the Machine: of many, the autoscaler names others in each loop.
          `nodes of group ${group.id} have joined, and the autoscaler does not see them: check that the autoscaler's kubeconfig is that of the cluster with these nodes`
        : `the node of machine ${asked.machine} has joined in the meantime: list the nodes of group ${group.id} again`,
    );
  }
  if (!asked.isUnregistered && state.rollout === 'choosing') {
    return notNow(
      `a rollout of group ${group.id} is in progress, which replaces its nodes: wait until it has deleted the last old one`,
    );
  }
  return undefined;
}

/** Preserved, and not on its way out all the same. */
function staysPreserved(name: string, { deployment, members, nowMs }: GroupState): boolean {
  const { machine } = members.get(name) ?? {};
  if (machine === undefined || isTerminating(machine) || namesListed(deployment).has(name)) return false;
  return isPreserved(machine, nowMs);
}

/** The autoscaler knows it as one without a Node, as it is; it had one, which may come back. */
function isLost(asked: DeletionTarget, state: GroupState): boolean {
  if (asked.kind !== 'machine' || !asked.isUnregistered || !isToGo(asked.machine, state)) return false;
  return state.members.get(asked.machine)?.isLost === true;
}

/** The same for the same ones: the autoscaler names them in another order in each loop. */
function describeLost(machines: readonly string[]): string {
  const [first = '', ...others] = machines.toSorted();
  return others.length === 0
    ? `machine ${first} has lost its node, which may come back: to give the machine up, delete it`
    : `machine ${first} and ${others.length} more have lost their nodes, which may come back: to give a machine up, delete it`;
}

function namesOf(targets: readonly DeletionTarget[]): readonly string[] {
  return [...new Set(targets.flatMap((one) => (one.kind === 'machine' ? [one.machine] : [])))];
}

/** Machines of a rollout are on their way out, and others are to come for them: how long that takes is up to their drains. */
function isMakingRoom({ rollout, members }: GroupState): boolean {
  return rollout !== 'none' && [...members.values()].some(({ machine }) => isTerminating(machine));
}

/** Neither gone, nor on its way out, nor kept, nor about to be replaced. */
function isToGo(name: string, { deployment, members, nowMs }: GroupState): boolean {
  const { machine } = members.get(name) ?? {};
  if (machine === undefined || isTerminating(machine) || namesListed(deployment).has(name)) return false;
  return !isKeptForInspection(machine, nowMs) && !isReplacedBySet(machine, nowMs);
}

/**
 * Finds what a node stands for that is to be deleted from the group of this MachineDeployment, whose replicas without a Machine have these
 * places.
 */
export function deletionTargetOf(
  membership: Membership,
  { metadata }: MachineDeployment,
  named: NodeIdentifier,
  places: readonly string[],
): DeletionTarget {
  if (named.name === '' && named.providerId === '') return { node: '', kind: 'nameless' };
  const node = named.name === '' ? named.providerId : named.name;
  const placeholder = parsePlaceholder(named.providerId) ?? parsePlaceholder(named.name);
  if (placeholder?.kind === 'missing') {
    const { group, place } = placeholder;
    if (group !== metadata.name) return { node, kind: 'foreign' };
    return places.includes(place) ? { node, kind: 'missing', place } : { node, kind: 'gone' };
  }

  const machine = membership.machineOf(named);
  if (machine === undefined) return { node, kind: membership.isNode(named) ? 'unmanaged' : 'gone' };
  if (membership.wasOfAnother(named, machine)) return { node, kind: 'another' };
  if (membership.deploymentOf(machine)?.metadata.uid !== metadata.uid) return { node, kind: 'foreign' };
  const isUnregistered = placeholder !== undefined || named.annotations?.[FAKE_NODE_ANNOTATION] !== undefined;
  return { node, kind: 'machine', machine: machine.metadata.name, isUnregistered };
}
