import { NODE_LABEL } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../../pkg/apis/meta.ts';
import { ApiError, ignoreNotFound } from '../../../pkg/kube/client/errors.ts';
import { machines, namespaces, nodes } from '../../../pkg/kube/client/resource.ts';
import type { CommandCluster } from '../command-cluster.ts';
import { isMarked, MARK_SELECTOR, NAMESPACE } from './objects.ts';

/** On the namespace: the Nodes that an undo has found, for the one that continues it when they are gone. */
const NODES_ANNOTATION = 'machinist-try/nodes';

/**
 * The names of the Nodes that the command has created: those with its mark, of its Machines, and that an undo has seen before. What belongs to
 * a Node in namespaces of others is known by this name alone; none that a Node of somebody else has is among them.
 */
export async function namesOfNodes(
  cluster: CommandCluster,
  namespace: KubeObject | undefined,
): Promise<ReadonlySet<string>> {
  const marked = (await cluster.reader.list(nodes, { labelSelector: MARK_SELECTOR })).items;
  const ours = namespace === undefined ? [] : await cluster.list(machines).catch(noneIfNotServed);
  const names = new Set([
    ...marked.map(({ metadata }) => metadata.name),
    ...ours.flatMap(({ metadata }) => metadata.labels?.[NODE_LABEL] ?? []),
    ...(namespace?.metadata.annotations?.[NODES_ANNOTATION] ?? '').split(',').filter((name) => name !== ''),
  ]);
  for (const name of names) {
    const node = await cluster.reader.get(nodes, { name }).catch(ignoreNotFound);
    if (node !== undefined && !isMarked(node)) names.delete(name);
  }
  return names;
}

/** For an undo that continues this one. */
export async function rememberNodes(cluster: CommandCluster, names: ReadonlySet<string>): Promise<void> {
  const annotations = { [NODES_ANNOTATION]: [...names].join() };
  await cluster.change(namespaces, NAMESPACE, ({ metadata }) =>
    metadata.annotations?.[NODES_ANNOTATION] === annotations[NODES_ANNOTATION]
      ? undefined
      : { metadata: { annotations } },
  );
}

function noneIfNotServed(err: unknown): [] {
  if (!ApiError.is(err, 'NotServed')) throw err;
  return [];
}
