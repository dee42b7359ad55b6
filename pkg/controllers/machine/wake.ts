import { isDeepStrictEqual } from 'node:util';

import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { DELETION_POLICY_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted, keyOf } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import type { Informer, Lister } from '../../kube/cache/lister.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Priority, Queue } from '../../work/workqueue/queue.ts';
import type { ActivityRegistry } from '../../work/activity/registry.ts';
import { CLASS_INDEX } from '../../operator/indexes/class-index.ts';
import { CONTROLLER_INDEX } from '../../operator/indexes/owner-index.ts';
import { DATA_SECRET_INDEX, SECRET_INDEX } from '../../operator/indexes/secret-references.ts';
import { machinesOfNode } from '../../operator/indexes/machines-of-node.ts';
import { deletionStageOf } from '../machine-facts/deletion-stage.ts';
import { deploymentOf, ownerNameOf } from '../machine-facts/owners.ts';
import { conditionsChanged } from '../machine-facts/node-health.ts';
import { retryRequestOf } from '../machine-facts/retry-request.ts';
import type { ActivityResults } from './calls/results.ts';
import type { MachineController } from './controller.ts';

export interface MachineWakeDeps {
  /** With MACHINE_INDEXES of pkg/indexes. */
  readonly machines: Informer<Machine>;
  /** Of every target cluster. */
  readonly nodes: readonly Informer<Node>[];
  readonly queue: Queue;
  readonly activities: Pick<ActivityRegistry<ActivityResults>, 'onEnd' | 'forgetAll'>;
  readonly controller: MachineController;
  /** Whether a Machine is of this namespace; others may have Nodes in the same cluster. */
  readonly isOurs: (machine: Machine) => boolean;
}

/** Enqueues a Machine when it changes, when its Node does, and when a call or drain of it has ended. */
export function wakeMachines(parts: MachineWakeDeps): void {
  const { machines, nodes, queue, activities } = parts;
  activities.onEnd((key) => {
    const machine = machines.get(key);
    queue.add(key, machine === undefined ? 'normal' : priorityOf(machine, 'normal'));
  });
  machines.onChange((old, current) => wakeMachine(parts, old, current));
  for (const informer of nodes) wakeByNodes(parts, informer);
}

/** Enqueues the Machines of a class when it appears, vanishes, or changes in what they depend on, and so for the Secrets that it names. */
export function wakeMachinesOfClasses(
  { machines, classes, secrets, labelPolicies }: Pick<Caches, 'machines' | 'classes' | 'secrets' | 'labelPolicies'>,
  queue: Queue,
): void {
  const wakeAllOf = (machineClass: MachineClass): void => {
    for (const machine of machines.byIndex(CLASS_INDEX, keyOf(machineClass))) {
      queue.add(keyOf(machine), priorityOf(machine, 'low'));
    }
  };
  classes.onChange((old, current) => {
    if (old !== undefined && current !== undefined && textForMachines(old) === textForMachines(current)) return;
    const machineClass = current ?? old;
    if (machineClass !== undefined) wakeAllOf(machineClass);
  });
  secrets.onChange((old, current) => {
    const secret = current ?? old;
    if (secret === undefined) return;
    const users = [SECRET_INDEX, DATA_SECRET_INDEX].flatMap((index) => classes.byIndex(index, keyOf(secret)));
    for (const machineClass of new Set(users)) wakeAllOf(machineClass);
  });
  labelPolicies.onChange((old, current) => {
    if (old !== undefined && current !== undefined && isDeepStrictEqual(old.spec, current.spec)) return;
    for (const machine of machines.list()) if (!isBeingDeleted(machine)) queue.add(keyOf(machine), 'low');
  });
}

/** Enqueues the Machines of a MachineDeployment when its deletion policy changes: what is being deleted may wait for no more. */
export function wakeMachinesByPolicy(
  { machines, machineSets: sets, machineDeployments: deployments }: Pick<Caches, 'machines'> & OwnerCaches,
  queue: Queue,
): void {
  deployments.onChange((old, current) => {
    if (current === undefined || policyTextOf(old) === policyTextOf(current)) return;
    for (const machine of machines.list()) {
      if (deploymentOf(machine, { sets, deployments })?.metadata.uid !== current.metadata.uid) continue;
      queue.add(keyOf(machine), priorityOf(machine, 'low'));
    }
  });
}

/** Enqueues the Machines of a set that has lost its MachineDeployment, or is first seen without one: what a rollout has left on their Nodes goes. */
export function wakeMachinesOfOrphans(
  { machines, machineSets }: Pick<Caches, 'machines' | 'machineSets'>,
  queue: Queue,
): void {
  machineSets.onChange((old, current) => {
    if (current === undefined || ownerNameOf(current, 'MachineDeployment') !== undefined) return;
    if (old !== undefined && ownerNameOf(old, 'MachineDeployment') === undefined) return;
    for (const machine of machines.byIndex(CONTROLLER_INDEX, current.metadata.uid)) {
      queue.add(keyOf(machine), priorityOf(machine, 'low'));
    }
  });
}

/** Enqueues a Machine when another one of its name goes, in whatever namespace that is: its creation may wait for the name. */
export function wakeNamesakes(
  machines: Lister<Machine>,
  everywhere: Pick<Informer<Machine>, 'onChange'> | undefined,
  queue: Queue,
): void {
  everywhere?.onChange((old, current) => {
    if (old === undefined || current !== undefined) return;
    for (const machine of machines.byIndex('name', old.metadata.name)) {
      const key = keyOf(machine);
      if (machines.get(key) !== undefined) queue.add(key);
    }
  });
}

type OwnerCaches = Pick<Caches, 'machineSets' | 'machineDeployments'>;

function policyTextOf(deployment: MachineDeployment | undefined): string | undefined {
  return deployment?.metadata.annotations?.[DELETION_POLICY_ANNOTATION];
}

/**
 * Metadata matters to Machines only by the finalizer, without which they do not start, and by a requested retry. Compared as text: the server always
 * writes members in the same order, and a difference too many costs one look.
 */
function textForMachines({ metadata, kind: _kind, apiVersion: _apiVersion, ...content }: MachineClass): string {
  const { uid, finalizers, deletionTimestamp } = metadata;
  return JSON.stringify([uid, finalizers, deletionTimestamp, retryRequestOf({ metadata }), content]);
}

function wakeByNodes({ machines, queue, controller, isOurs }: MachineWakeDeps, nodes: Informer<Node>): void {
  const ofNode = (node: Node): readonly Machine[] => machinesOfNode(machines, node).filter(isOurs);
  nodes.onDelivered((old, current) => {
    // What is shown may have passed over it, by a write of our own.
    if (current !== undefined) controller.nodeSeen(old, current, () => ofNode(current));
    if (old !== undefined && current !== undefined) controller.nodeDelivered(old, current, () => ofNode(current));
    if (old === undefined || (current !== undefined && (isBeingDeleted(old) || !isBeingDeleted(current)))) return;
    const concerned = ofNode(current ?? old);
    controller.nodeDeleted(old, current, concerned);
    // The answer to a write of our own may have shown it before: then nothing changes any more.
    for (const machine of concerned) queue.add(keyOf(machine), priorityOf(machine, 'normal'));
  });
  nodes.onChange((old, current) => {
    if (current !== undefined) controller.nodeSeen(old, current, () => ofNode(current));
    if (old !== undefined && (current?.metadata.uid !== old.metadata.uid || !isBeingDeleted(current)))
      controller.forgetNode(old);
    if (old !== undefined && current !== undefined && !nodeConcerns(old, current)) return;
    const concerned = new Map<string, Machine>();
    for (const node of [old, current]) {
      if (node === undefined) continue;
      for (const machine of ofNode(node)) concerned.set(keyOf(machine), machine);
    }
    for (const [key, machine] of concerned) queue.add(key, priorityOf(machine, nodes.hasSynced ? 'normal' : 'low'));
  });
}

function wakeMachine(
  { machines, queue, activities, controller }: MachineWakeDeps,
  old: Machine | undefined,
  current: Machine | undefined,
): void {
  if (old !== undefined && old.metadata.uid !== current?.metadata.uid) {
    controller.forget(old);
    activities.forgetAll(keyOf(old), current?.metadata.uid);
  }
  if (current !== undefined) queue.add(keyOf(current), priorityOf(current, machines.hasSynced ? 'normal' : 'low'));
}

/** Heartbeats and images are no news: with them 2,000 Nodes would mean 7 passes a second for nothing. */
function nodeConcerns(old: Node, current: Node): boolean {
  return (
    conditionsChanged(old.status?.conditions ?? [], current.status?.conditions ?? []) ||
    !isDeepStrictEqual(old.status?.capacity, current.status?.capacity) ||
    !isDeepStrictEqual(concernOf(old), concernOf(current))
  );
}

function concernOf({ metadata, spec }: Node): unknown[] {
  const { uid, labels, annotations, finalizers, deletionTimestamp } = metadata;
  return [uid, labels, annotations, finalizers, deletionTimestamp, spec?.providerID, spec?.taints, spec?.unschedulable];
}

/**
 * Deletions first, and of those the ones that have begun: all that a fleet of thousands pays for would otherwise go at the very end, and
 * each would wait so long between two steps that what was seen at the first is too old for the next.
 */
function priorityOf(machine: Machine, otherwise: 'normal' | 'low'): Priority {
  if (!isBeingDeleted(machine)) return otherwise;
  return deletionStageOf(machine) === undefined ? 'high' : 'highest';
}
