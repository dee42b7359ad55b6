import { setTimeout as sleep } from 'node:timers/promises';

import { NODE_FINALIZER } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../../pkg/apis/meta.ts';
import { ignoreNotFound } from '../../../pkg/kube/client/errors.ts';
import {
  customResourceDefinitions,
  events,
  leases,
  machines,
  machineSets,
  namespaces,
  nodes,
  secrets,
} from '../../../pkg/kube/client/resource.ts';
import type { Resource } from '../../../pkg/apis/resource.ts';
import type { CommandCluster } from '../command-cluster.ts';
import { CommandError } from '../command-error.ts';
import type { PrintLine } from '../terminal.ts';
import { KINDS } from './look.ts';
import { isMarked, MARK_SELECTOR, NAMESPACE } from './objects.ts';

const LOOK_MS = 500;
const PATIENCE_MS = 5 * 60_000;
/** The node lifecycle controller looks every five seconds. */
const REPORT_MS = 12_000;

/** What is deleted while the manager runs, which waits for VMs and takes its finalizers off; in this order. */
export const MANAGED: readonly Resource<KubeObject>[] = [...KINDS, secrets];
/** They go with their owners: to delete them as well only makes these create others. */
const OWNED: ReadonlySet<Resource<KubeObject>> = new Set([machineSets, machines]);

/** Deletes what the manager looks after, and waits until it is gone. Rejects with CommandError when that takes too long. */
export async function removeManaged(cluster: CommandCluster, out: PrintLine, signal: AbortSignal): Promise<void> {
  for (const resource of MANAGED) {
    if (!OWNED.has(resource)) await removeAll(cluster, resource);
    await untilNone(cluster, resource, signal);
    out(`No ${resource.kind} is left.`);
  }
}

async function removeAll(cluster: CommandCluster, resource: Resource<KubeObject>): Promise<void> {
  for (const object of await cluster.list(resource)) await remove(cluster, resource, object);
}

async function untilNone(cluster: CommandCluster, resource: Resource<KubeObject>, signal: AbortSignal): Promise<void> {
  let left: readonly string[] = [];
  const isNone = async (): Promise<boolean> => {
    left = (await cluster.list(resource)).map(({ metadata }) => metadata.name);
    return left.length === 0;
  };
  const tooLate = (): CommandError =>
    new CommandError(
      `${left.length} ${resource.kind} left after ${PATIENCE_MS / 60_000} minutes: ${left.slice(0, 3).join(', ')}. See what they wait for with machinist describe -n ${NAMESPACE}, then run machinist try --undo again`,
    );
  await patiently(isNone, tooLate, signal);
}

/**
 * Deletes the Nodes of these names that have the mark, with their Leases, and waits until they are gone. No manager runs any more that would take
 * its finalizer off. Resolves with their names.
 */
export async function removeNodes(
  cluster: CommandCluster,
  names: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const marked = (await cluster.reader.list(nodes, { labelSelector: MARK_SELECTOR })).items;
  for (const node of marked) {
    await cluster
      .change(nodes, node.metadata.name, ({ metadata: { finalizers = [], uid } }) =>
        uid === node.metadata.uid && finalizers.includes(NODE_FINALIZER)
          ? { metadata: { finalizers: finalizers.filter((one) => one !== NODE_FINALIZER) } }
          : undefined,
      )
      .catch(ignoreNotFound);
    await removeAndWait(cluster, nodes, node, signal);
  }
  for (const name of names) {
    const lease = await cluster.reader.get(leases, { namespace: 'kube-node-lease', name }).catch(ignoreNotFound);
    if (lease !== undefined) await remove(cluster, leases, lease);
  }
  return marked.map(({ metadata }) => metadata.name);
}

/** Deletes the namespace, if it is ours, and waits until it is gone. Resolves with whether there was one. */
export async function removeNamespace(cluster: CommandCluster, signal: AbortSignal): Promise<boolean> {
  const namespace = await cluster.reader.get(namespaces, { name: NAMESPACE }).catch(ignoreNotFound);
  if (namespace === undefined || !isMarked(namespace)) return false;
  await removeAndWait(cluster, namespaces, namespace, signal);
  return true;
}

/**
 * Deletes what the node lifecycle controller has reported of Nodes of these names. Of Nodes that were `removed` just now it reports that a few
 * seconds later, if there is one.
 */
export async function removeEvents(
  cluster: CommandCluster,
  names: ReadonlySet<string>,
  removed: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  for (let tries = removed.length === 0 ? 0 : REPORT_MS / LOOK_MS; ; tries--) {
    const found = (await cluster.reader.list(events, { namespace: 'default' })).items.filter(
      ({ involvedObject }) => involvedObject?.kind === 'Node' && names.has(involvedObject.name ?? ''),
    );
    const reported = found.filter(({ reason }) => reason === 'RemovingNode').map((one) => one.involvedObject?.name);
    if (tries <= 0 || removed.every((name) => reported.includes(name))) {
      for (const event of found) await remove(cluster, events, event);
      return;
    }
    await sleep(LOOK_MS, undefined, { signal });
  }
}

/** Deletes the definition of a kind as it was looked at, and waits until it is gone. */
export async function removeDefinition(
  cluster: CommandCluster,
  definition: KubeObject,
  signal: AbortSignal,
): Promise<void> {
  await removeAndWait(cluster, customResourceDefinitions, definition, signal, { asSeen: true });
}

async function removeAndWait<T extends KubeObject>(
  cluster: CommandCluster,
  resource: Resource<T>,
  object: T,
  signal: AbortSignal,
  how: Removal = {},
): Promise<void> {
  const { name, uid } = object.metadata;
  await remove(cluster, resource, object, how);
  const isGone = async (): Promise<boolean> =>
    (await cluster.reader.get(resource, { name }).catch(ignoreNotFound))?.metadata.uid !== uid;
  const tooLate = (): CommandError =>
    new CommandError(
      `${resource.kind} ${name} is still being deleted after ${PATIENCE_MS / 60_000} minutes; run machinist try --undo again`,
    );
  await patiently(isGone, tooLate, signal);
}

interface Removal {
  /** Only if nobody has changed it since it was read. */
  readonly asSeen?: boolean;
}

/** Somebody else may have deleted it. */
async function remove<T extends KubeObject>(
  cluster: CommandCluster,
  resource: Resource<T>,
  object: T,
  { asSeen = false }: Removal = {},
): Promise<void> {
  if (object.metadata.deletionTimestamp !== undefined) return;
  await cluster.remove(resource, object, { namespace: object.metadata.namespace ?? '', asSeen }).catch(ignoreNotFound);
}

/** Waits until it is so. Throws what `tooLate` makes after some minutes. */
async function patiently(
  isSo: () => Promise<boolean>,
  tooLate: () => CommandError,
  signal: AbortSignal,
): Promise<void> {
  const tries = PATIENCE_MS / LOOK_MS;
  for (let i = 0; !(await isSo()); i++) {
    if (i >= tries) throw tooLate();
    await sleep(LOOK_MS, undefined, { signal });
  }
}
