import type { Node } from '../apis/wire.ts';
import { ignoreNotFound } from '../kube/client/errors.ts';
import { nodes } from '../kube/client/resource.ts';
import type { DrainRequest } from './drain.ts';

/** The Node of a drain. */
export type NodeIdentity = Pick<DrainRequest, 'target' | 'nodeName' | 'nodeUID'>;

/** The Node with the requested UID, read live; undefined when it does not exist or another has its name. Throws ApiError. */
export async function readNode(
  { target, nodeName, nodeUID }: NodeIdentity,
  signal: AbortSignal,
): Promise<Node | undefined> {
  const node = await target.reader.get(nodes, { name: nodeName }, { signal }).catch(ignoreNotFound);
  return node?.metadata.uid === nodeUID ? node : undefined;
}

/** The Node with the requested UID from the cache. */
export function cachedNode({ target, nodeName, nodeUID }: NodeIdentity): Node | undefined {
  const node = target.nodes.get(nodeName);
  return node?.metadata.uid === nodeUID ? node : undefined;
}
