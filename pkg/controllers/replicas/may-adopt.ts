import { isBeingDeleted, refOf, type KubeObject } from '../../apis/meta.ts';
import type { Reader } from '../../kube/client/client.ts';
import { ignoreNotFound } from '../../kube/client/errors.ts';
import type { Resource } from '../../apis/resource.ts';

/** An owner that is gone, or about to go, must not gain objects: they would be deleted with it. Only a live read tells. */
export async function mayAdopt<T extends KubeObject>(
  reader: Reader,
  resource: Resource<T>,
  owner: T,
  signal: AbortSignal,
): Promise<boolean> {
  const live = await reader.get(resource, refOf(owner), { signal }).catch(ignoreNotFound);
  return live !== undefined && live.metadata.uid === owner.metadata.uid && !isBeingDeleted(live);
}
