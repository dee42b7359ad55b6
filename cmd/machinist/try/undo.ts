import { setTimeout as sleep } from 'node:timers/promises';

import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { Event } from '../../../pkg/apis/wire.ts';
import { ignoreNotFound } from '../../../pkg/kube/errors.ts';
import {
  customResourceDefinitions,
  events,
  leases,
  machineClasses,
  machineDeployments,
  machines,
  machineSets,
  namespaces,
  nodes,
  secrets,
} from '../../../pkg/kube/resource.ts';
import type { Resource } from '../../../pkg/apis/resource.ts';
import type { CommandCluster } from '../command-cluster.ts';
import { CommandError } from '../command-error.ts';
import type { PrintLine } from '../terminal.ts';
import { FLEET, MARK_SELECTOR, NAMESPACE } from './objects.ts';

const LOOK_MS = 500;
const PATIENCE_MS = 5 * 60_000;

/** What is deleted while the manager runs, which waits for VMs and takes its finalizers off; in this order. */
const MANAGED: readonly (readonly [Resource<KubeObject>, string])[] = [
  [machineDeployments, 'MachineDeployment'],
  [machineSets, 'MachineSet'],
  [machines, 'Machine'],
  [machineClasses, 'MachineClass'],
  [secrets, 'Secret'],
];

/** Deletes what the manager looks after, and waits until it is gone. Rejects with CommandError when that takes too long. */
export async function removeManaged(cluster: CommandCluster, out: PrintLine, signal: AbortSignal): Promise<void> {
  for (const [resource, kind] of MANAGED) {
    // What another kind owns goes with that: to delete it as well only makes its owner create another one.
    if (kind !== 'MachineSet' && kind !== 'Machine') await removeAll(cluster, resource);
    await untilNone(cluster, resource, kind, signal);
    out(`No ${kind} is left.`);
  }
}

async function removeAll(cluster: CommandCluster, resource: Resource<KubeObject>): Promise<void> {
  for (const object of await cluster.list(resource)) await remove(cluster, resource, object);
}

async function untilNone(
  cluster: CommandCluster,
  resource: Resource<KubeObject>,
  kind: string,
  signal: AbortSignal,
): Promise<void> {
  for (const untilMs = cluster.now() + PATIENCE_MS; ; await sleep(LOOK_MS, undefined, { signal })) {
    const left = (await cluster.list(resource)).map(({ metadata }) => metadata.name);
    if (left.length === 0) return;
    if (cluster.now() < untilMs) continue;
    const names = left.slice(0, 3).join(', ');
    throw new CommandError(
      `${left.length} ${kind} left after ${PATIENCE_MS / 60_000} minutes: ${names}. See what they wait for with machinist describe -n ${NAMESPACE}, then run machinist try --undo again`,
    );
  }
}

/** Deletes what nobody looks after: Nodes that were left, their Leases and Events, and the namespace. Waits until that is gone. */
export async function removeRest(cluster: CommandCluster, signal: AbortSignal): Promise<void> {
  const { items } = await cluster.reader.list(nodes, { labelSelector: MARK_SELECTOR });
  for (const node of items) await remove(cluster, nodes, node);
  await removeNamed(cluster, leases, 'kube-node-lease', ({ metadata }) => metadata.name);
  const namespace = await cluster.reader.get(namespaces, { name: NAMESPACE }).catch(ignoreNotFound);
  if (namespace !== undefined) await removeAndWait(cluster, namespaces, namespace, signal);
  // Those of the node lifecycle controller.
  await removeNamed(cluster, events, 'default', ({ involvedObject }: Event) => involvedObject?.name ?? '');
}

/** Objects in a namespace of others that belong to one of our Nodes, by its name. */
async function removeNamed<T extends KubeObject>(
  cluster: CommandCluster,
  resource: Resource<T>,
  namespace: string,
  nodeOf: (object: T) => string,
): Promise<void> {
  const { items } = await cluster.reader.list(resource, { namespace });
  for (const object of items) if (nodeOf(object).startsWith(`${FLEET}-`)) await remove(cluster, resource, object);
}

/** Deletes definitions of kinds, and waits until they are gone. */
export async function removeDefinitions(
  cluster: CommandCluster,
  definitions: readonly KubeObject[],
  signal: AbortSignal,
): Promise<void> {
  for (const definition of definitions) await removeAndWait(cluster, customResourceDefinitions, definition, signal);
}

async function removeAndWait<T extends KubeObject>(
  cluster: CommandCluster,
  resource: Resource<T>,
  object: T,
  signal: AbortSignal,
): Promise<void> {
  const { name, uid } = object.metadata;
  await remove(cluster, resource, object);
  for (const untilMs = cluster.now() + PATIENCE_MS; ; await sleep(LOOK_MS, undefined, { signal })) {
    const present = await cluster.reader.get(resource, { name }).catch(ignoreNotFound);
    if (present === undefined || present.metadata.uid !== uid) return;
    if (cluster.now() >= untilMs) {
      throw new CommandError(
        `${resource.kind} ${name} is still being deleted after ${PATIENCE_MS / 60_000} minutes; run machinist try --undo again`,
      );
    }
  }
}

/** Somebody else may have deleted it. */
async function remove<T extends KubeObject>(cluster: CommandCluster, resource: Resource<T>, object: T): Promise<void> {
  if (object.metadata.deletionTimestamp !== undefined) return;
  const { namespace = '' } = object.metadata;
  await cluster.remove(resource, object, namespace).catch(ignoreNotFound);
}
